"""Functions as policies: both forms give what a table gives, and wrong answers are caught on every batch."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pytest

from mixope.base.errors import DataError, UsageError
from mixope.policies import CallablePolicy, DiscretePolicy, Policy, TabularPolicy

TABLE = np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])
NAMES = np.array(["left", "right"])
OBSERVATIONS, TAKEN = np.array([0, 1, 2, 1]), np.array(["left", "right", "right", "left"])


def by_law(observations: np.ndarray) -> np.ndarray:
    return TABLE[observations]


def by_action(observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
    return TABLE[observations, (actions == "right").astype(int)]


def by_law_logged(observations: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(by_law(observations))


def by_action_logged(observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(by_action(observations, actions))


@pytest.mark.parametrize(
    ("function", "log"), [(by_law, False), (by_action, False), (by_law_logged, True), (by_action_logged, True)]
)
def test_every_form_equals_the_table(function: object, log: bool) -> None:
    policy, table = CallablePolicy(function, NAMES, log), TabularPolicy(TABLE, actions=NAMES)
    assert isinstance(policy, DiscretePolicy)
    np.testing.assert_allclose(policy.probs(OBSERVATIONS), table.probs(OBSERVATIONS))
    np.testing.assert_allclose(policy.log_prob(OBSERVATIONS, TAKEN), table.log_prob(OBSERVATIONS, TAKEN))


def test_without_actions_it_is_a_policy_but_not_a_discrete_one() -> None:
    policy = CallablePolicy(by_action)
    assert isinstance(policy, Policy)
    assert not isinstance(policy, DiscretePolicy)
    np.testing.assert_allclose(policy.log_prob(OBSERVATIONS[:2], TAKEN[:2]), np.log([0.5, 0.75]))


def test_a_bare_law_has_the_actions_zero_to_a() -> None:
    policy = CallablePolicy(by_law)
    np.testing.assert_allclose(policy.log_prob(np.array([1]), np.array([1])), np.log([0.75]))
    with pytest.raises(DataError, match="does not know 1 of the actions"):
        policy.log_prob(np.array([1]), np.array([2]))


def test_actions_may_come_with_the_function() -> None:
    def law(observations: np.ndarray) -> np.ndarray:
        return TABLE[observations]

    law.actions = ["left", "right"]
    policy = CallablePolicy(law)
    assert isinstance(policy, DiscretePolicy)
    assert policy.actions.tolist() == ["left", "right"]


@pytest.mark.parametrize("function", [by_law, by_action])
def test_unknown_actions(function: object) -> None:
    strange = np.array(["left", "jump"])
    with pytest.raises(DataError, match="'jump'"):
        CallablePolicy(function, NAMES).log_prob(OBSERVATIONS[:2], strange)
    policy = CallablePolicy(function, NAMES, unknown_actions="zero")
    assert policy.log_prob(OBSERVATIONS[:2], strange).tolist() == [np.log(0.5), -np.inf]


def test_densities_of_real_actions_may_exceed_one() -> None:
    policy = CallablePolicy(lambda observations, actions: np.full(len(actions), 3.0))
    np.testing.assert_allclose(policy.log_prob(np.zeros((2, 3)), np.zeros((2, 1))), np.log(3.0))
    logged = CallablePolicy(lambda observations, actions: np.full(len(actions), 1.5), log=True)
    np.testing.assert_allclose(logged.log_prob(np.zeros((2, 3)), np.zeros((2, 1))), 1.5)


def test_optional_arguments_do_not_count() -> None:
    assert CallablePolicy(lambda observations, temperature=1.0: TABLE[observations]).log_prob([0], [0])[0] < 0


ONES = np.zeros(2, dtype=int)
WRONG = {
    "vector for a law": (lambda o: np.full(len(o), 0.5), {}, "wrong shape", "(2, 2) from f(observations)"),
    "law for a vector": (
        lambda o, a: np.full((len(o), 2), 0.5),
        {},
        "wrong shape",
        "(2,) from f(observations, actions)",
    ),
    "too many columns": (lambda o: np.full((len(o), 4), 0.25), {}, "wrong shape", "shape (2, 4)"),
    "too few rows": (lambda o: TABLE[:1], {}, "wrong shape", "shape (1, 2)"),
    "logs as law": (lambda o: np.log([[0.5, 0.5]] * 2), {}, "gave log-probabilities", "log=True"),
    "logs as taken": (lambda o, a: np.log([0.5, 0.5]), {}, "gave log-probabilities", "log=True"),
    "law as logs": (lambda o: TABLE[o], {"log": True}, "where logarithms were announced", "leave out log=True"),
    "taken as logs": (lambda o, a: a + 0.5, {"log": True}, "where logarithms were announced", "leave out log=True"),
    "nan law": (lambda o: np.full((len(o), 2), np.nan), {}, "have NaN", "row 0"),
    "nan taken": (lambda o, a: np.array([0.5, np.nan]), {}, "gave NaN", "rows:     1"),
    "negative taken": (lambda o, a: np.array([0.5, -0.5]), {}, "negative probability", "-0.5"),
    "above one taken": (lambda o, a: np.array([0.5, 1.5]), {}, "probability above one", "1.5"),
    "infinite taken": (lambda o, a: np.array([0.5, np.inf]), {}, "infinite value", "inf"),
    "sums": (lambda o: np.full((len(o), 2), 0.4), {}, "do not sum to one", "0.8 at row 0"),
    "words": (lambda o: [["a", "b"]] * 2, {}, "are not numbers", "<U1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_are_refused_in_their_own_words(name: str) -> None:
    function, options, problem, fact = WRONG[name]
    with pytest.raises(DataError) as caught:
        CallablePolicy(function, [0, 1], **options).log_prob(ONES, ONES)
    assert problem in caught.value.problem
    assert fact in str(caught.value)


def test_probabilities_of_all_actions_must_sum_to_one() -> None:
    with pytest.raises(DataError, match="over all actions, of 2 row"):
        CallablePolicy(lambda o, a: np.full(len(o), 0.7), [0, 1]).probs(ONES)


@pytest.mark.parametrize("function", [lambda: None, lambda a, b, c: None, dict, 3])
def test_what_is_no_policy_function_is_refused(function: object) -> None:
    with pytest.raises(UsageError, match=r"expected a function|takes \(observations\)"):
        CallablePolicy(function)


def test_zero_for_unknown_actions_needs_actions() -> None:
    with pytest.raises(UsageError, match="does not name its actions"):
        CallablePolicy(by_law, unknown_actions="zero")


def scaled(factor: float) -> object:
    return lambda observations: TABLE[observations] * factor


class Scorer:
    def __init__(self, weight: float) -> None:
        self.weight = weight

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        return TABLE[observations] * self.weight

    def method(self, observations: np.ndarray) -> np.ndarray:
        return self(observations)


def powered(observations: np.ndarray, power: float) -> np.ndarray:
    return TABLE[observations] ** power


def test_fingerprints_follow_code_and_captured_values() -> None:
    made = [
        by_law,
        by_action,
        scaled(1.0),
        scaled(2.0),
        Scorer(1.0),
        Scorer(2.0),
        Scorer(1.0).method,
        Scorer(2.0).method,
        functools.partial(powered, power=1.0),
        functools.partial(powered, power=2.0),
    ]
    prints = [CallablePolicy(function).fingerprint() for function in made]
    assert len(set(prints)) == len(prints)
    assert CallablePolicy(scaled(2.0)).fingerprint() == prints[3]
    assert CallablePolicy(Scorer(2.0)).fingerprint() == prints[5]
    assert CallablePolicy(by_law, NAMES).fingerprint() != prints[0]


def test_fingerprints_follow_the_data_a_function_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    before = CallablePolicy(by_law).fingerprint()
    monkeypatch.setitem(globals(), "TABLE", TABLE[::-1].copy())
    assert CallablePolicy(by_law).fingerprint() != before


def test_pickling_keeps_the_kind() -> None:
    policy = pickle.loads(pickle.dumps(CallablePolicy(by_law, NAMES)))
    assert isinstance(policy, DiscretePolicy)
    np.testing.assert_allclose(policy.probs(OBSERVATIONS), TABLE[OBSERVATIONS])


def test_a_function_that_does_not_name_its_actions_is_told_how() -> None:
    with pytest.raises(DataError, match=r"CallablePolicy\(function, actions=\[…\]\)"):
        CallablePolicy(by_law, actions=np.arange(2)).log_prob(OBSERVATIONS, TAKEN)
