"""KL weights against loops over states."""

import math

import numpy as np
import pytest

import mixope
from mixope.behaviours import kl_weights, sample_weights
from mixope.estimators import state_ratio

from .problems import A, S, laws, plain, problem, rows


def slow_weights(columns, target, law, labels):
    """w_j = share of the visited states where logger j is nearest, over its share of rows; ties to the first."""
    data = plain(columns)
    visited = sorted({s for _, s, *_ in data})
    wins = dict.fromkeys(labels, 0)
    for s in visited:
        distance = {}
        for j in labels:
            terms = [target[s, a] * math.log(target[s, a] / law[j][s, a]) for a in range(A) if target[s, a] > 0]
            distance[j] = sum(terms)
        wins[min(labels, key=lambda j: distance[j])] += 1
    share = {j: sum(1 for row in data if row[0] == j) / len(data) for j in labels}
    return np.array([wins[j] / len(visited) / share[j] for j in labels])


@pytest.mark.parametrize("seed", range(5))
def test_known_policies(seed):
    columns, target, labels = rows(seed, labels=("a", "b", "c")), laws([seed, 7], 1)[0], "abc"
    law = dict(zip(labels, laws([seed, 1], 3), strict=True))
    found = problem(columns, target, law)
    np.testing.assert_allclose(kl_weights(found), slow_weights(columns, target, law, labels), rtol=1e-12)
    np.testing.assert_array_equal(sample_weights(found), np.ones(3))


@pytest.mark.parametrize("seed", range(5))
def test_counted_policies_are_smoothed_by_one(seed):
    columns, target = rows(seed, n=60), laws([seed, 7], 1)[0]
    law = {j: np.ones((S, A)) for j in "ab"}
    for j, s, a, *_ in plain(columns):
        law[j][s, a] += 1
    law = {j: counts / counts.sum(axis=1, keepdims=True) for j, counts in law.items()}
    np.testing.assert_allclose(
        kl_weights(problem(columns, target)), slow_weights(columns, target, law, "ab"), rtol=1e-12
    )


def test_weights_keep_the_number_of_rows():
    columns = rows(3, labels=("a", "b", "c"))
    found = problem(columns, laws(8, 1)[0])
    t = found.transitions
    assert float(kl_weights(found)[t.logger] @ t.rows) == pytest.approx(t.n_rows, rel=1e-12)


def test_a_target_that_avoids_an_action_has_a_finite_distance():
    columns, target = rows(1), np.tile([0.5, 0.5, 0.0], (S, 1))
    assert np.isfinite(kl_weights(problem(columns, target))).all()


def test_a_logger_that_is_never_nearest_is_dropped_and_not_divided_by():
    """The answer is then the one of the other logger alone, by every estimator that re-weights."""
    columns, target = rows(2), laws(8, 1)[0]
    law = {"a": target, "b": laws(4, 1)[0]}
    found = problem(columns, target, law)
    assert kl_weights(found)[1] == 0.0
    known = {j: mixope.TabularPolicy(p) for j, p in law.items()}
    columns["action_prob"] = np.array([law[j][s, a] for j, s, a, *_ in plain(columns)])
    alone = {name: values[columns["policy_id"] == "a"] for name, values in columns.items()}
    for both, single in ((state_ratio.kl_emp, state_ratio.emp), (state_ratio.bch_kl_pooled, state_ratio.bch_pooled)):
        weighted = mixope.evaluate(mixope.read(columns), mixope.TabularPolicy(target), both(), loggers=known)
        one = mixope.evaluate(mixope.read(alone), mixope.TabularPolicy(target), single())
        assert weighted.value == pytest.approx(one.value, abs=1e-10)
        assert weighted.loggers[1].weight_share == pytest.approx(0.0, abs=1e-12)


def test_equal_policies_leave_the_tie_to_the_first():
    columns, target = rows(2), laws(8, 1)[0]
    same = laws(4, 1)[0]
    assert kl_weights(problem(columns, target, {"a": same, "b": same}))[1] == 0.0
