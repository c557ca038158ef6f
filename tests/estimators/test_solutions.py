"""Averages over loggers, weights, and what each family says of itself."""

import numpy as np
import pytest

import mixope
from mixope.estimators import REGISTRY, make, state_ratio
from mixope.estimators.solution import Solution, Weights, combine
from mixope.requests.scores import ClusterScores
from mixope.solvers.outcome import Outcome, Solved
from mixope.worlds import simulate, singlepath


@pytest.fixture(scope="module")
def setting():
    target, *loggers = np.random.default_rng(5).dirichlet([3, 3], size=(4, 5))
    return simulate(singlepath(), loggers, 30, 20, seed=1), mixope.TabularPolicy(target)


@pytest.fixture(scope="module")
def known():
    _, *loggers = np.random.default_rng(5).dirichlet([3, 3], size=(4, 5))
    return {f"logger-{j}": mixope.TabularPolicy(law) for j, law in enumerate(loggers)}


@pytest.mark.parametrize(("averaged", "alone"), [("emp-single", "emp"), ("bch", "bch-pooled")])
def test_estimates_a_logger_are_averaged(setting, averaged, alone):
    columns, target = setting
    parts = []
    for label in np.unique(columns["policy_id"]):
        mine = columns["policy_id"] == label
        parts.append(mixope.evaluate(mixope.read({n: v[mine] for n, v in columns.items()}), target, alone))
    result = mixope.evaluate(mixope.read(columns), target, averaged)
    assert result.value == pytest.approx(np.mean([p.value for p in parts]), rel=1e-10)
    apart = np.linalg.norm(np.concatenate([p.scores for p in parts])) / len(parts)
    assert np.linalg.norm(result.scores) == pytest.approx(apart, rel=1e-8)
    assert [share.weight_share for share in result.loggers] == pytest.approx([1 / 3] * 3, abs=1e-10)


def test_combining_takes_the_worst_outcome_and_the_weighted_value():
    parts = [
        Solution(
            1.0, Weights(np.array([2.0, 0.0]), np.array([2.0, 0.0]), 1.0), ClusterScores(np.ones(2)), uncovered_mass=0.1
        ),
        Solution(
            3.0,
            Weights(np.array([0.0, 4.0]), np.array([0.0, 4.0]), 1.0),
            ClusterScores(3 * np.ones(2)),
            uncovered_mass=0.3,
            solved=Solved(Outcome.INACCURATE, 0.5),
        ),
    ]
    both = combine(parts, [0.25, 0.75])
    assert both.value == 2.5
    assert both.uncovered_mass == pytest.approx(0.25)
    np.testing.assert_allclose(both.scores.by_cluster, 2.5)
    assert not both.solved.ok
    np.testing.assert_allclose(both.weights.total, [0.25, 0.75])


@pytest.mark.parametrize("name", [name for name, entry in REGISTRY.items() if "counts" in entry.takes])
def test_solving_twice_leaves_no_trace(name, setting, known):
    columns, target = setting
    estimator, logs = make(name), mixope.read(columns)
    first, second = (mixope.evaluate(logs, target, estimator, loggers=known) for _ in range(2))
    assert (first.value, first.interval) == (second.value, second.interval)


def test_effective_size_of_equal_weights_is_their_number():
    weights = Weights(np.array([3.0, 5.0]), np.array([3.0, 5.0]), 1.0)
    assert weights.effective_sample_size() == pytest.approx(8.0)
    assert weights.effective_sample_size(np.array([0.0, 1.0])) == pytest.approx(5.0)
    assert Weights(np.zeros(2), np.zeros(2), 0.0).effective_sample_size() == 0.0


def test_a_thousand_states_are_solved_sparsely_and_quickly(setting):
    """A ring of 5,000 states: EMP against the same counts by a sparse solve of its own."""
    from scipy import sparse
    from scipy.sparse.linalg import spsolve

    n, generator = 5_000, np.random.default_rng(0)
    state = np.repeat(np.arange(n), 8)
    action = np.tile(np.arange(2), 4 * n)
    after = (state + 1 + generator.integers(0, 40, size=8 * n)) % n
    reward = np.sin(state / 100) + action
    columns = {
        "policy_id": np.full(8 * n, "only"),
        "episode_id": np.arange(8 * n),
        "step": np.zeros(8 * n, dtype=int),
        "observation": state,
        "action": action,
        "reward": reward,
        "next_observation": after,
        "terminated": np.zeros(8 * n, dtype=bool),
    }
    law = generator.dirichlet([2, 2], size=n)
    share = law[state, action] / 4
    chain = sparse.csr_matrix((share, (state, after)), shape=(n, n))
    system = sparse.vstack([(sparse.eye_array(n) - chain.T).tocsr()[:-1], sparse.csr_matrix(np.ones((1, n)))])
    d = spsolve(sparse.csc_matrix(system), np.append(np.zeros(n - 1), 1.0))
    result = mixope.evaluate(mixope.read(columns), mixope.TabularPolicy(law), "emp")
    assert result.value == pytest.approx(float(np.sum(d[state] * share * reward)), abs=1e-8)
    assert result.effective_sample_size > 0


def test_the_paper_form_is_chosen_by_the_constructor_and_named_alike(setting):
    columns, target = setting
    general, paper = (
        mixope.evaluate(mixope.read(columns), target, state_ratio.emp(form=form)) for form in ("general", "paper")
    )
    assert general.estimator == paper.estimator == "emp"
    assert abs(general.value - paper.value) > 1e-6
