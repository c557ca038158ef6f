"""Rules: a dict, a table, a function of one state and a model that chooses are what their vectorised form is."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import LinearSVC

import mixope
from mixope.base.errors import DataError, MixopeWarning, UsageError
from mixope.policies import DiscretePolicy, Policy, read_policy
from mixope.policies.named import NamedState, Naming

N = 400
GENERATOR = np.random.default_rng(0)
IDS, CHOICE = GENERATOR.integers(0, 6, N), GENERATOR.integers(0, 2, N)
FACTORS = np.stack([IDS // 2, IDS % 2], axis=1)
VECTORS = GENERATOR.normal(size=(N, 3))
REWARD = CHOICE * (IDS > 2) + 0.1 * GENERATOR.normal(size=N)
noted = pytest.mark.filterwarnings("ignore::mixope.MixopeWarning")


def logs(observation: Any, action: Any = CHOICE) -> mixope.Logs:
    episodes = {"episode_id": np.arange(N) // 20, "step": np.arange(N) % 20}
    return mixope.Logs.from_arrays(observation=observation, action=action, reward=REWARD, ends="truncated", **episodes)


def value(observation: Any, target: Any, action: Any = CHOICE) -> float:
    return mixope.evaluate(logs(observation, action), target, "emp").value


BY_ID = {state: int(state > 2) for state in range(6)}
BY_FACTORS = {(row, column): int(2 * row + column > 2) for row in range(3) for column in range(2)}
SAME = {
    "dict of ids": (IDS, BY_ID),
    "dict of factors": (FACTORS, BY_FACTORS),
    "dict of laws": (IDS, {state: {0: 1.0 - action, 1: float(action)} for state, action in BY_ID.items()}),
    "data frame": (IDS, pd.DataFrame({"state": list(BY_ID), "action": list(BY_ID.values())})),
    "function of one id": (IDS, lambda s: 1 if s > 2 else 0),
    "function of one id, by dict": (IDS, lambda s: BY_ID[s]),
    "function of one tuple": (FACTORS, lambda s: BY_FACTORS[s]),
    "function of one state, its law": (IDS, lambda s: [0.0, 1.0] if s > 2 else [1.0, 0.0]),
    "function of one state, its law by name": (IDS, lambda s: {0: 0.0, 1: 1.0} if s > 2 else {0: 1}),
    "function of states, their laws by name": (IDS, lambda s: [{int(one > 2): 1.0} for one in s]),
    "vectorised choice": (IDS, lambda s: (s > 2).astype(int)),
    "vectorised law": (IDS, lambda s: np.eye(2)[(s > 2).astype(int)]),
}


@noted
@pytest.mark.parametrize("name", SAME)
def test_every_form_of_a_rule_has_one_value(name: str) -> None:
    observation, target = SAME[name]
    states = mixope.TabularPolicy.deterministic(list(BY_ID.values()), actions=[0, 1])
    expected = value(IDS, states)
    assert value(observation, target) == pytest.approx(expected, abs=1e-12)


@noted
@pytest.mark.parametrize("width", [1, 2, 5, 7])
def test_a_function_of_one_vector_is_its_vectorised_form_whatever_the_width(width: int) -> None:
    vectors = GENERATOR.normal(size=(N, width))
    one: Callable[[np.ndarray], int] = lambda s: 1 if s[0] > 0 else 0  # noqa: E731
    assert value(vectors, one) == value(vectors, lambda s: (s[:, 0] > 0).astype(int))
    # What gives a row of the batch must not pass for one answer per row.
    first = mixope.CallablePolicy(lambda s: float(s[0] > 0), actions=[0, 1])
    chosen = (vectors[:, 0] > 0).astype(int)
    assert (first.log_prob(vectors[:width], chosen[:width]) == 0).all()


@noted
def test_a_function_of_one_mixed_state_sees_its_columns() -> None:
    state = {"age": VECTORS[:, 0], "ward": np.array(["a", "b"])[IDS % 2]}
    words = np.array(["wait", "treat"])[CHOICE]
    one = mixope.evaluate(logs(state, words), lambda s: "treat" if s["age"] > 0 else "wait", "emp").value
    batch = mixope.evaluate(logs(state, words), lambda s: np.where(s["age"] > 0, "treat", "wait"), "emp").value
    assert one == batch


MOODS = np.array(["sad", "glad"])[IDS % 2]
NAMED = {
    "factors": ({"plan": IDS // 2, "mood": MOODS}, lambda s: (s["plan"] > 0) & (s["mood"] == "glad")),
    "vectors": ({"plan": VECTORS[:, 0], "mood": VECTORS[:, 1]}, lambda s: (s["plan"] > 0) & (s["mood"] < 1)),
}


@noted
@pytest.mark.parametrize("kind", NAMED)
def test_columns_of_a_state_have_names_for_a_batch_and_for_one_state(kind: str) -> None:
    state, chosen = NAMED[kind]
    named = logs(state)
    assert named.schema.observation_kind == {"factors": "factors", "vectors": "vector"}[kind]

    def one(s: Any) -> int:
        assert isinstance(s, tuple) or s.ndim == 1
        plan, _ = s
        assert plan == s[0] == s["plan"]
        return int(chosen(s))

    def several(s: Any) -> np.ndarray:
        assert s.shape == (len(s), 2)
        assert (s[:, 0] == s["plan"]).all()
        assert [row["mood"] for row in s] == s["mood"].tolist()
        return np.asarray(chosen(s)).astype(int)

    values = [
        mixope.evaluate(named, target, "emp").value
        for target in (
            one,
            several,
            mixope.CallablePolicy(lambda s, a: chosen(s) == (a == 1)),
            mixope.Softened(mixope.CallablePolicy(one, actions=[0, 1]), 0.0),
            Choosing(chosen),
        )
    ]
    assert np.ptp(values) < 1e-12
    assert values[0] == pytest.approx(mixope.evaluate(named, mixope.read_policy(one), "emp").value, abs=1e-12)


class Choosing:
    """A policy class of the user's own."""

    def __init__(self, chosen: Callable[[Any], Any]) -> None:
        self.chosen = chosen

    def log_prob(self, observations: Any, actions: np.ndarray) -> Any:
        return np.where(self.chosen(observations) == (actions == 1), 0.0, -np.inf)

    def fingerprint(self) -> str:
        return "choosing"


@noted
def test_the_mean_of_a_gaussian_sees_columns_by_name() -> None:
    named, real = {"x": VECTORS[:, 0], "y": VECTORS[:, 1]}, VECTORS[:, :1] + GENERATOR.normal(size=(N, 1))
    by_name = mixope.evaluate(logs(named, real), mixope.GaussianPolicy(lambda s: s["y"], lambda s: 1 + s["x"] ** 2))
    by_place = mixope.evaluate(logs(named, real), mixope.GaussianPolicy(lambda s: s[:, 1], lambda s: 1 + s[:, 0] ** 2))
    assert by_name.value == by_place.value
    one = mixope.evaluate(logs(named, real), mixope.read_policy(lambda s: s["y"], scale=0.5), "emp").value
    assert one == mixope.evaluate(logs(named, real), mixope.read_policy(lambda s: s[1], scale=0.5), "emp").value


def test_a_misspelt_column_offers_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"'modd'.*Did you mean 'mood'"):
        mixope.evaluate(logs({"plan": IDS // 2, "mood": MOODS}), lambda s: int(s["modd"] == "glad"), "emp")


def test_a_named_state_is_the_tuple_that_it_was() -> None:
    rows = Naming(("plan", "mood"))(FACTORS)
    one = NamedState((1, 0), ("plan", "mood"))
    assert BY_FACTORS[one] == BY_FACTORS[1, 0]
    assert pickle.loads(pickle.dumps(one))["mood"] == 0
    assert type(rows[:, ::-1]) is np.ndarray
    assert (rows[IDS > 2]["mood"] == FACTORS[IDS > 2, 1]).all()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda s: 1 if s > 2 else 0, "for one state, and is asked state by state: it is evaluated as a determ"),
        (lambda s: (s > 2).astype(int), "chooses an action for a batch of states"),
        (lambda s: [0.5, 0.5] if s > 2 else [1.0, 0.0], "gives the action probabilities of one state"),
        (lambda s: {0: 0.5, 1: 0.5} if s > 2 else {0: 1.0}, "gives the action probabilities of one state"),
    ],
)
def test_what_was_found_out_about_a_function_is_said_once(function: Any, words: str) -> None:
    policy = read_policy(function)
    with pytest.warns(MixopeWarning, match=words):
        policy.log_prob(IDS, CHOICE)
    policy.log_prob(IDS, CHOICE)


@noted
def test_laws_by_name_are_laws_in_the_order_of_known_actions() -> None:
    def law(state: int) -> dict[str, float]:
        return {"b": 0.25, "a": 0.75} if state > 2 else {"a": 1.0}

    named, free = mixope.CallablePolicy(law, actions=["a", "b", "c"]), mixope.CallablePolicy(law)
    assert named.probs(np.array([1, 5])).tolist() == [[1.0, 0.0, 0.0], [0.75, 0.25, 0.0]]
    asked = np.array([5, 5, 1, 5]), np.array(["a", "b", "b", "c"])
    assert np.exp(free.log_prob(*asked)).tolist() == [0.75, 0.25, 0.0, 0.0]
    assert np.exp(named.log_prob(*asked)).tolist() == [0.75, 0.25, 0.0, 0.0]
    with pytest.raises(mixope.DataError, match="an action that is not among its actions"):
        mixope.CallablePolicy(law, actions=["a", "c"]).probs(np.array([5]))


@noted
def test_a_rule_is_pickled_softened_and_named() -> None:
    policy = read_policy(chooses, actions=[0, 1], epsilon=0.1)
    assert isinstance(policy, DiscretePolicy)
    np.testing.assert_allclose(policy.probs(np.array([0, 5])), [[0.95, 0.05], [0.05, 0.95]])
    again = pickle.loads(pickle.dumps(policy))
    np.testing.assert_array_equal(again.probs(IDS), policy.probs(IDS))
    assert again.fingerprint() == policy.fingerprint()


def chooses(state: int) -> int:
    return 1 if state > 2 else 0


def test_epsilon_is_spread_over_actions_that_are_known() -> None:
    for rule in (BY_ID, lambda s: 1, pd.DataFrame({"observation": [0], "action": [1]})):
        with pytest.raises(UsageError, match=r"epsilon is spread over all actions.*pass actions="):
            read_policy(rule, epsilon=0.1)
    np.testing.assert_allclose(read_policy(BY_ID, actions=[0, 1, 2], epsilon=0.3).probs([5]), [[0.1, 0.8, 0.1]])


def test_a_table_without_prob_is_a_rule_if_it_has_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "rule.csv"
    path.write_text("observation.row,observation.column,action\n0,0,left\n0,1,right\n")
    with pytest.warns(MixopeWarning, match="no column prob: it is read as a rule"):
        policy = read_policy(path)
    assert policy.log_prob([[0, 0], [0, 1]], ["left", "left"]).tolist() == [0.0, -np.inf]
    assert policy.log_prob([[0, 0]], ["up"]).tolist() == [-np.inf]
    path.write_text("state,choice\n0,left\n1,right\n")
    with pytest.warns(MixopeWarning, match="read as a rule"):
        assert read_policy(path, columns={"action": "choice"}).log_prob([1], ["right"]).tolist() == [0.0]
    path.write_text("state,action,pi_new\n0,left,0.5\n1,right,0.5\n")
    with pytest.raises(DataError, match="no column for the prob"):
        read_policy(path)


def test_models_that_choose_are_deterministic_policies() -> None:
    fitted = LinearSVC().fit(VECTORS, np.where(VECTORS[:, 0] > 0, "go", "stay"))
    policy = read_policy(fitted)
    with pytest.warns(MixopeWarning, match="LinearSVC chooses"):
        laws = policy.probs(VECTORS)
    assert policy.actions.tolist() == ["go", "stay"]
    assert (policy.actions[laws.argmax(axis=1)] == fitted.predict(VECTORS)).all()


@noted
def test_a_classifier_that_only_predicts_sees_mixed_states_by_column() -> None:
    state = {"age": VECTORS[:, 0], "ward": np.array(["a", "b"])[IDS % 2]}
    fitted = RidgeClassifier().fit(pd.DataFrame({"age": state["age"]}), np.where(state["age"] > 0, "go", "stay"))
    words = np.array(["stay", "go"])[CHOICE]
    by_hand = lambda s: fitted.predict(pd.DataFrame({"age": s["age"]}))  # noqa: E731
    assert value(state, fitted, words) == value(state, by_hand, words)


class Trained:
    """As in Stable-Baselines3: actions, and the state of a recurrent network."""

    def predict(self, observations: np.ndarray) -> tuple[np.ndarray, None]:
        return (observations[:, 0] > 0).astype(int), None


@noted
def test_a_model_whose_predict_gives_a_pair_is_read_by_the_first() -> None:
    assert value(VECTORS, Trained()) == value(VECTORS, lambda s: (s[:, 0] > 0).astype(int))


@noted
def test_a_deterministic_policy_over_real_actions_asks_for_a_scale() -> None:
    real = VECTORS[:, :1] + GENERATOR.normal(size=(N, 1))
    for rule in (lambda s: s[0], lambda s: s[:, 0], lambda s: s[:, :1]):
        with pytest.raises(DataError, match=r"(?s)no density.*read_policy\(…, scale=…\)"):
            mixope.evaluate(logs(VECTORS, real), rule)
        policy = read_policy(rule, scale=0.5)
        gaussian = mixope.GaussianPolicy(lambda s: s[:, 0], 0.5)
        np.testing.assert_allclose(policy.log_prob(VECTORS, real), gaussian.log_prob(VECTORS, real))


class OwnLaw:
    """A policy class without a fingerprint."""

    actions = (0, 1)

    def __init__(self, chance: float, shape: Callable[[np.ndarray], Any] = lambda x: x) -> None:
        self.chance, self.shape = chance, shape

    def probs(self, observations: np.ndarray) -> Any:
        return self.shape(np.tile([1 - self.chance, self.chance], (len(observations), 1)))

    def log_prob(self, observations: np.ndarray, actions: np.ndarray) -> Any:
        return self.shape(np.log(np.where(np.asarray(actions) == 1, self.chance, 1 - self.chance)))


def same(values: np.ndarray) -> np.ndarray:
    return values


def test_a_class_needs_no_fingerprint_of_its_own() -> None:
    policies = [read_policy(OwnLaw(chance, same)) for chance in (0.3, 0.3, 0.4)]
    assert all(isinstance(policy, Policy) and isinstance(policy, DiscretePolicy) for policy in policies)
    prints = [policy.fingerprint() for policy in policies]
    assert prints[0] == prints[1] != prints[2]
    assert value(IDS, OwnLaw(0.3, same)) == value(IDS, mixope.CallablePolicy(OwnLaw(0.3).probs, actions=[0, 1]))
    with pytest.warns(MixopeWarning, match="cannot be pickled, so that its fingerprint holds for this run only"):
        read_policy(OwnLaw(0.3, lambda values: values))


class Probs:
    """Laws only."""

    def probs(self, observations: np.ndarray) -> np.ndarray:
        return np.tile([0.5, 0.5], (len(observations), 1))


def test_laws_alone_are_a_policy() -> None:
    assert read_policy(Probs(), actions=["a", "b"]).log_prob([0], ["b"])[0] == pytest.approx(np.log(0.5))


def test_pickled_policies_need_trust(tmp_path: Path) -> None:
    path = tmp_path / "rule.pkl"
    path.write_bytes(pickle.dumps(BY_ID))
    with pytest.raises(DataError, match="unpickling runs code"):
        read_policy(path)
    assert read_policy(path, trust=True).log_prob([5], [1]).tolist() == [0.0]
    path.write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"unpickling .* failed"):
        read_policy(path, trust=True)


class Tensor:
    """What torch gives: no array until it is detached."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> np.ndarray:
        return self.values


def test_tensors_that_require_grad_are_detached() -> None:
    law = mixope.CallablePolicy(lambda s: Tensor(np.tile([0.25, 0.75], (len(s), 1))), actions=[0, 1])
    np.testing.assert_allclose(law.log_prob(IDS[:2], [1, 0]), np.log([0.75, 0.25]))
    np.testing.assert_allclose(read_policy(OwnLaw(0.3, Tensor)).probs(IDS[:1]), [[0.7, 0.3]])


def wrong(words: str, target: Any) -> tuple[str, Any]:
    return words, target


def acting(actions: Any) -> OwnLaw:
    made = OwnLaw(0.3, same)
    made.actions = actions
    return made


WRONG = {
    "own: a single action": wrong("the actions of the policy have the wrong shape", acting(3)),
    "own: an action twice": wrong("lists an action twice", acting([1, 1])),
    "rows do not sum to one": wrong("do not sum to one", lambda s: np.tile([0.5, 0.4], (len(s), 1))),
    "NaN": wrong("have NaN", lambda s: np.full((len(s), 2), np.nan)),
    "one row too few": wrong("wrong shape", lambda s: np.tile([0.5, 0.5], (len(s) - 1, 1))),
    "transposed": wrong("wrong shape", lambda s: np.tile([[0.5], [0.5]], (1, len(s)))),
    "a column of choices": wrong("wrong shape", lambda s: (s > 2).astype(int)[:, None]),
    "a column of probabilities": wrong("wrong shape", lambda s, a: np.full((len(s), 1), 0.5)),
    "one number too few": wrong("wrong shape", lambda s, a: np.full(len(s) - 1, 0.5)),
    "chances of the second action": wrong("wrong shape", lambda s: np.where(s > 2, 0.9, 0.1)),
    "ragged": wrong("different lengths", lambda s: [[0.5, 0.5]] * (len(s) - 1) + [[1.0]]),
    "nothing": wrong("", lambda s: None),
    "a law by name that lacks a part": wrong("sum to", lambda s: {0: 0.5, 1: 0.3}),
    "a law by name without actions": wrong("", lambda s: {}),
    "a law by other names": wrong("the policy has string actions", lambda s: {"left": 0.5, "right": 0.5}),
    "a law by name of words": wrong("are not numbers", lambda s: {0: "half", 1: "half"}),
    "words for integers": wrong("the policy has string actions", lambda s: "left" if s > 2 else "right"),
    "unhashable": wrong("unhashable", lambda s: BY_ID[{s: 1}]),
    "a sparse dict": wrong("does not know 5 of the states", {0: 1}),
    "tuples of two lengths": wrong("different numbers of factors", {(0, 1): 1, (0,): 1}),
    "a dict of lists": wrong("no column for the observation", {0: [1], 1: [0]}),
    "own: one row too few": wrong("wrong shape", OwnLaw(0.3, lambda x: x[:-1])),
    "own: a column": wrong("wrong shape", OwnLaw(0.3, lambda x: x[..., None])),
    "own: NaN": wrong("gave NaN", OwnLaw(0.3, lambda x: x * np.nan)),
    "own: words": wrong("are not numbers", OwnLaw(0.3, lambda x: np.full(len(x), "a"))),
    "own: infinite": wrong("infinite density", OwnLaw(0.3, lambda x: x + np.inf)),
    "own: raising": wrong("ZeroDivisionError", OwnLaw(0.3, lambda x: 1 / 0)),
    "a class": wrong("expected a function or a callable object", OwnLaw),
    "a number": wrong("cannot make a policy of float", 3.5),
}


@noted
@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_policy_is_told_in_words(name: str) -> None:
    words, target = WRONG[name]
    with pytest.raises(mixope.MixopeError) as caught:
        mixope.evaluate(logs(IDS), target, "emp")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("ending", "module", "extra"),
    [(".zip", "stable_baselines3.common.save_util", "sb3"), (".d3", "d3rlpy", "d3rlpy"), (".pt", "torch", "torch")],
)
def test_a_model_without_its_library_is_told_what_to_install(
    ending: str, module: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / f"model{ending}").write_bytes(b"PK")
    with pytest.raises(UsageError, match=rf"pip install 'mixope\[{extra}\]'"):
        read_policy(tmp_path / f"model{ending}", trust=True)


def test_a_rule_that_is_softened_already_is_not_told_how_to_soften_it() -> None:
    def rule(state):
        return 1 if state > 2 else 0

    policy = mixope.read_policy(rule, actions=[0, 1], epsilon=0.2)
    with pytest.warns(mixope.MixopeWarning, match="softened as asked"):
        assert policy.probs(np.array([1, 3])).tolist() == [[0.9, 0.1], [0.1, 0.9]]
