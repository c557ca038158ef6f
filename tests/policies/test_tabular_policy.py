"""A table answers as a dictionary would, and refuses what is no policy with words of its own."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mixope.base.errors import DataError, UnknownName, UsageError
from mixope.policies import DiscretePolicy, TabularPolicy, read_policy, uniform

HALF = np.array([[0.5, 0.5], [0.25, 0.75]])


def laws(count: int, actions: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(actions), count)


INTEGERS = st.lists(st.integers(-(2**62), 2**62) | st.integers(-5, 5), min_size=1, max_size=12, unique=True)
TEXTS = st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=4), min_size=1, unique=True)
FACTORS = st.lists(
    st.tuples(st.integers(-3, 3), st.sampled_from(["a", "b", "door"]), st.integers(0, 2**60)),
    min_size=1,
    max_size=12,
    unique=True,
)
STATES = st.one_of(INTEGERS, TEXTS, FACTORS)


def as_array(states: list) -> np.ndarray:
    if isinstance(states[0], int):
        return np.array(states, dtype=np.int64)
    return np.array(states, dtype=object)


@settings(max_examples=60, deadline=None)
@given(states=STATES, actions=st.one_of(INTEGERS, TEXTS), data=st.data())
def test_lookup_equals_a_dictionary_and_a_loop(states: list, actions: list, data: st.DataObject) -> None:
    table = laws(len(states), len(actions), data.draw(st.integers(0, 99)))
    slow = {(s, a): table[i, j] for i, s in enumerate(states) for j, a in enumerate(actions)}
    policy = TabularPolicy(table, as_array(states), as_array(actions))
    asked = data.draw(st.lists(st.tuples(st.sampled_from(states), st.sampled_from(actions)), min_size=1, max_size=30))
    observed, taken = as_array([s for s, _ in asked]), as_array([a for _, a in asked])
    expected = [slow[pair] for pair in asked]
    np.testing.assert_allclose(np.exp(policy.log_prob(observed, taken)), expected, rtol=1e-12)
    np.testing.assert_allclose(policy.probs(observed), [[slow[s, a] for a in actions] for s, _ in asked], rtol=1e-12)


@settings(max_examples=100, deadline=None)
@given(states=STATES, actions=INTEGERS, data=st.data())
def test_permuting_the_table_changes_nothing(states: list, actions: list, data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 99))
    table, named, acts = laws(len(states), len(actions), seed), as_array(states), as_array(actions)
    shuffle = np.random.default_rng(seed + 1)
    rows, columns = shuffle.permutation(len(states)), shuffle.permutation(len(actions))
    one = TabularPolicy(table, named, acts)
    other = TabularPolicy(table[rows][:, columns], named[rows], acts[columns])
    taken = np.resize(acts, len(states))
    np.testing.assert_array_equal(one.log_prob(named, taken), other.log_prob(named, taken))
    assert one.fingerprint() == other.fingerprint()


@settings(max_examples=60, deadline=None)
@given(known=STATES, asked=STATES)
def test_a_default_answers_exactly_where_a_dictionary_has_no_entry(known: list, asked: list) -> None:
    if type(known[0]) is not type(asked[0]):
        return
    table = laws(len(known), 3, 0)
    slow = dict(zip(known, table, strict=True))
    policy = TabularPolicy(table, as_array(known), default="uniform")
    expected = [slow.get(state, np.full(3, 1 / 3)) for state in asked]
    np.testing.assert_allclose(policy.probs(as_array(asked)), expected, rtol=1e-12)


def test_a_table_is_a_discrete_policy_and_survives_pickling() -> None:
    policy = TabularPolicy(HALF, ["a", "b"])
    assert isinstance(policy, DiscretePolicy)
    copy = pickle.loads(pickle.dumps(policy))
    np.testing.assert_array_equal(copy.probs(np.array(["b"])), [[0.25, 0.75]])
    assert copy.fingerprint() == policy.fingerprint()


def test_unnamed_states_and_actions_count_from_zero() -> None:
    policy = TabularPolicy(HALF)
    assert policy.actions.tolist() == [0, 1]
    assert policy.states.tolist() == [0, 1]
    np.testing.assert_allclose(policy.log_prob(np.array([1, 0]), np.array([1, 0])), np.log([0.75, 0.5]))
    assert policy.fingerprint() == TabularPolicy(HALF, [0, 1], [0, 1]).fingerprint()


def test_a_zero_is_minus_infinity_without_a_warning() -> None:
    assert TabularPolicy([[1.0, 0.0]]).log_prob(np.array([0]), np.array([1])).tolist() == [-np.inf]


def test_empty_batches_have_empty_answers() -> None:
    policy = TabularPolicy(HALF, ["a", "b"])
    assert policy.log_prob(np.array([]), np.array([])).shape == (0,)
    assert policy.probs(np.zeros(0, dtype=np.int64)).shape == (0, 2)


def test_rows_within_the_tolerance_are_made_to_sum_to_one() -> None:
    probs = TabularPolicy([[0.5, 0.5 + 9e-7]]).probs(np.array([0]))
    np.testing.assert_allclose(probs.sum(), 1, rtol=0, atol=1e-15)


def test_normalising_twice_is_normalising_once() -> None:
    once = TabularPolicy(laws(500, 7, 3) * (1 + 5e-7))
    assert TabularPolicy(once.probabilities).fingerprint() == once.fingerprint()


def test_the_table_does_not_change_with_the_array_it_came_from() -> None:
    given_array = HALF.copy()
    policy = TabularPolicy(given_array)
    given_array[:] = 0
    assert policy.probabilities.tolist() == HALF.tolist()
    with pytest.raises(ValueError, match="read-only"):
        policy.probabilities[0, 0] = 1


def test_whole_floats_and_any_integer_width_name_the_same_states() -> None:
    policy = TabularPolicy(HALF)
    for dtype in (np.int8, np.uint64, np.float32, np.int64, bool, object):
        np.testing.assert_array_equal(policy.probs(np.array([1, 0]).astype(dtype)), HALF[::-1])


def test_bytes_and_text_name_the_same_states() -> None:
    policy = TabularPolicy(HALF, ["é", "b"])
    np.testing.assert_array_equal(policy.probs(np.char.encode(np.array(["b", "é"]), "utf-8")), HALF[::-1])


def test_one_factor_is_an_id() -> None:
    policy = TabularPolicy(HALF, np.array([[4], [9]]))
    np.testing.assert_array_equal(policy.probs(np.array([9])), policy.probs(np.array([[9]])))


def test_lists_of_mixed_factors_keep_their_types() -> None:
    policy = TabularPolicy(HALF, [[0, "a"], [1, "b"]])
    assert policy.states.tolist() == [[0, "a"], [1, "b"]]
    np.testing.assert_array_equal(policy.probs([[1, "b"]]), HALF[1:])


def test_many_wide_factors_do_not_overflow() -> None:
    factors = np.random.default_rng(0).integers(-(2**62), 2**62, (300, 12))
    table = laws(300, 2, 0)
    np.testing.assert_allclose(TabularPolicy(table, factors).probs(factors[::-1]), table[::-1], rtol=1e-12)


@pytest.mark.parametrize(
    ("default", "expected"),
    [("uniform", [0.5, 0.5]), ("right", [0, 1]), ([0.9, 0.1], [0.9, 0.1]), (np.array([0.0, 1.0]), [0, 1])],
)
def test_defaults(default: object, expected: list[float]) -> None:
    policy = TabularPolicy(HALF, actions=["left", "right"], default=default)
    np.testing.assert_allclose(policy.probs(np.array([7, 1])), [expected, HALF[1]])
    assert policy.fingerprint() != TabularPolicy(HALF, actions=["left", "right"]).fingerprint()


def test_unknown_actions_may_count_as_zero() -> None:
    policy = TabularPolicy(HALF, unknown_actions="zero")
    assert policy.log_prob(np.array([0, 0]), np.array([5, 0])).tolist() == [-np.inf, np.log(0.5)]


def test_greedy_takes_the_likeliest_action_and_keeps_the_rest() -> None:
    policy = TabularPolicy(HALF, ["a", "b"], ["l", "r"], default=[0.1, 0.9]).greedy()
    assert policy.probs(np.array(["a", "b", "new"])).tolist() == [[1, 0], [0, 1], [0, 1]]


def test_deterministic_takes_one_action_a_state() -> None:
    policy = TabularPolicy.deterministic(["up", "down", "up"])
    assert policy.actions.tolist() == ["down", "up"]
    assert policy.probs(np.array([0, 1])).tolist() == [[0, 1], [1, 0]]


def test_a_sparse_array_is_the_full_one() -> None:
    table = np.array([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])
    policy = TabularPolicy(sparse.coo_array(table), ["a", "b"], ["x", "z", "y"])
    assert policy.fingerprint() == TabularPolicy(table, ["a", "b"], ["x", "z", "y"]).fingerprint()
    np.testing.assert_array_equal(policy.probabilities, table)
    assert read_policy(sparse.csr_array(HALF)).fingerprint() == TabularPolicy(HALF).fingerprint()
    for wrong, words in ((-table, "outside [0, 1]"), (table / 2, "2 row(s) do not sum to one"), (table[:0], "empty")):
        with pytest.raises(DataError) as caught:
            TabularPolicy(sparse.csr_array(wrong))
        assert words in str(caught.value)


def test_a_full_table_that_does_not_fit_is_refused_before_it_is_made() -> None:
    always = TabularPolicy.deterministic(np.zeros(300_000, dtype=int), actions=np.arange(1000))
    assert np.exp(always.log_prob(np.array([7]), np.array([0]))).tolist() == [1.0]
    assert always.greedy().fingerprint() == always.fingerprint()
    for make in (
        lambda: always.probabilities,
        lambda: uniform(np.arange(1000)).probs(np.arange(300_000)),
        lambda: uniform(np.arange(1000), np.arange(300_000)),
    ):
        with pytest.raises(UsageError, match=r"300,000 × 1,000 entries, 2,289 MB in memory"):
            make()


def test_factors_can_be_put_in_the_order_of_the_logs() -> None:
    states = np.array([[0, "a"], [1, "b"]], dtype=object)
    policy = TabularPolicy(HALF, states, factors=["x", "y"])
    turned = policy.in_factor_order(["y", "x"])
    assert turned.factors == ("y", "x")
    np.testing.assert_array_equal(turned.probs(states[:, ::-1]), policy.probs(states))
    with pytest.raises(DataError, match="different state factors"):
        policy.in_factor_order(["x", "z"])


def test_a_hundred_thousand_states_answer_a_million_rows() -> None:
    generator = np.random.default_rng(0)
    states = np.char.add("s", generator.permutation(100_000).astype(str))
    table = laws(100_000, 3, 0)
    rows, taken = generator.integers(0, 100_000, 1_000_000), generator.integers(0, 3, 1_000_000)
    answers = TabularPolicy(table, states).log_prob(states[rows], taken)
    np.testing.assert_allclose(answers, np.log(table[rows, taken]))


def test_importing_policies_loads_numpy_only() -> None:
    heavy = "pyarrow pandas polars scipy sklearn duckdb"
    code = f"import sys, mixope.policies; print([m for m in {heavy.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


MALFORMED = {
    "one dimension": (([0.5, 0.5],), "have 1 dimension", "deterministic"),
    "three dimensions": ((np.ones((2, 1, 1)),), "have 3 dimension", "shape (2, 1, 1)"),
    "no states": ((np.zeros((0, 2)),), "the policy is empty", "shape (0, 2)"),
    "ragged": (([[0.5, 0.5], [1.0]],), "rows of different lengths", "a full array"),
    "ragged factors": ((HALF, [[1, 2], [3]]), "states of the policy have rows of different lengths", "k factors"),
    "scalar state": ((HALF, 5), "states of the policy have the wrong shape", "shape ()"),
    "words": (([["a", "b"]],), "are not numbers", "<U1"),
    "ragged objects": ((np.array([[None, "x"]], dtype=object),), "are not numbers", "object"),
    "nan": (([[0.5, 0.5], [np.nan, 1.0]],), "have NaN", "at state 1"),
    "infinite": (([[np.inf, 0.5]],), "infinite values", "inf at state 0"),
    "negative": (([[-0.1, 1.1 - 1e-9], [0.5, 0.5], [0.5, 0.5]],), "negative values", "-0.1 at state 0"),
    "above one": (([[1.5, 0.5], [0.3, 0.7]],), "values above one", "1.5 at state 0"),
    "percentages": (([[50.0, 50.0], [20.5, 79.5]],), "values above one", "divide by 100"),
    "counts": (([[3, 4], [0, 2]],), "values above one", "counts: divide every row"),
    "sums": (([[0.5, 0.5], [0.5, 0.4]], ["a", "b"]), "of 1 row(s) do not sum to one", "0.9 at state 'b'"),
    "zeros": (([[0.0, 0.0]],), "do not sum to one", "0 at state 0"),
    "logs": ((np.log(HALF),), "are log-probabilities", "np.exp"),
    "logs with minus infinity": (([[0.0, -np.inf]],), "are log-probabilities", "np.exp"),
    "logits": (([[-2.0, 3.5], [1.5, 0.2]],), "are logits", "softmax"),
    "transposed, by sums": (([[0.1, 0.2, 0.3], [0.9, 0.8, 0.7]],), "do not sum to one", "transpose"),
    "transposed, by labels": ((HALF[:1], [0, 1], [5]), "2 states for 1 rows and 1 actions for 2", "transpose"),
    "too few states": ((HALF, [1]), "1 states for 2 rows", "shape (2, 2)"),
    "too many actions": ((HALF, None, [1, 2, 3]), "3 actions for 2 columns", "shape (2, 2)"),
    "state twice": ((HALF, ["a", "a"]), "lists a state twice", "'a'"),
    "factors twice": ((HALF, [[1, 2], [1, 2]]), "lists a state twice", "(1, 2)"),
    "action twice": ((HALF, None, [7, 7]), "lists an action twice", "7 at columns 1"),
    "missing state": ((HALF, np.array(["a", None], dtype=object)), "states of the policy have missing", "rows:     1"),
    "nan state": ((HALF, [1.0, np.nan]), "states of the policy have missing", "rows:     1"),
    "mixed states": ((HALF, np.array(["a", 3], dtype=object)), "mix values of different types", "int (3), str ('a')"),
    "real states": ((HALF, [0.5, 1.5]), "states of the policy are real numbers", "discretise"),
    "huge states": ((HALF, np.array([1, 2**64 - 1], dtype=np.uint64)), "integers above 2**63", "as strings"),
    "gigantic states": ((HALF, np.array([1, 2**70], dtype=object)), "do not fit in 64 bits", "as strings"),
    "complex states": ((HALF, np.array([1j, 2j])), "are of type complex128", "strings"),
    "odd objects": ((HALF, np.array([object(), object()])), "are of type object", "convert"),
    "deep states": ((HALF, np.zeros((2, 1, 1))), "states of the policy have the wrong shape", "(2, 1, 1)"),
    "vector actions": ((HALF, None, [[1, 2], [3, 4]]), "actions of the policy have the wrong shape", "(A,) ids"),
    "bad bytes": ((HALF, np.array([b"\xff", b"a"])), "not UTF-8", "UTF-8"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_tables_are_refused_in_their_own_words(name: str) -> None:
    arguments, problem, fact = MALFORMED[name]
    with pytest.raises(DataError) as caught:
        TabularPolicy(*arguments)
    assert problem in caught.value.problem
    assert fact in str(caught.value)


def test_bad_options_are_refused() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'uniform'"):
        TabularPolicy(HALF, default="unifrom")
    with pytest.raises(UnknownName, match="default action 5"):
        TabularPolicy(HALF, default=5)
    with pytest.raises(DataError, match="default has the wrong shape"):
        TabularPolicy(HALF, default=[1.0])
    with pytest.raises(DataError, match="default probabilities of 1 row"):
        TabularPolicy(HALF, default=[0.5, 0.4])
    with pytest.raises(UnknownName, match="unknown_actions 'ignore'"):
        TabularPolicy(HALF, unknown_actions="ignore")
    with pytest.raises(UsageError, match="factors needs 1 distinct"):
        TabularPolicy(HALF, factors=["x", "y"])


QUESTIONS = {
    "unknown states": (
        [0, 8, 9, 8],
        [0, 0, 0, 0],
        "does not know 2 of the states asked for: 8, 9",
        "rows:     1, 2, 3",
    ),
    "unknown actions": ([0, 1], [0, 7], "does not know 1 of the actions asked for: 7", "unknown_actions='zero'"),
    "string states": (["0", "1"], [0, 0], "the policy has integer states, the logs have strings", ".astype(int)"),
    "string actions": ([0, 1], ["0", "1"], "the policy has integer actions, the logs have strings", ".astype(int)"),
    "factors": ([[0, 1]], [0], "names states by one id, the logs by 2 factors", "same state columns"),
    "vectors": ([[0.25, 1.0]], [0], "observations asked for are real numbers", "callable"),
    "lengths": ([0, 1], [0], "different lengths", "2 actions"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_without_an_answer_say_why(name: str) -> None:
    observations, actions, problem, fact = QUESTIONS[name]
    with pytest.raises(DataError) as caught:
        TabularPolicy(HALF).log_prob(np.array(observations), np.array(actions))
    assert problem in caught.value.problem
    assert fact in str(caught.value)


def test_a_mismatch_in_one_factor_names_it() -> None:
    policy = TabularPolicy(HALF, np.array([[0, "a"], [1, "b"]], dtype=object))
    with pytest.raises(DataError, match="integer states in factor 0, the logs have strings"):
        policy.probs(np.array([["0", "a"]]))


def test_unknown_states_point_to_default() -> None:
    with pytest.raises(DataError, match="default=") as caught:
        TabularPolicy(HALF, ["a", "b"]).probs(np.array(list("cdefghij")))
    assert "'c', 'd', 'e', 'f', 'g', …" in caught.value.problem
    assert "such as 'a'" in str(caught.value)
