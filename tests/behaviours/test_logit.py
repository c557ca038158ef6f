"""The logit is at its minimum, whatever its columns say of each other."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mixope.behaviours.logit import fit_logit


def drawn(classes, seed=0, n=800):
    """Numbers on several scales, and all levels of a category with their squares: columns that say the same."""
    draw = np.random.default_rng(seed)
    numbers = draw.normal(size=(n, 3)) * [1.0, 1e3, 1e-3]
    hot = np.eye(4)[draw.integers(4, size=n)]
    code = (numbers[:, 0] + hot[:, 1] + draw.logistic(size=n) > np.linspace(-1, 1, classes)[:-1, None]).sum(axis=0)
    standard = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    return np.concatenate([standard, standard**2, hot, hot**2], axis=1), code, draw.random(n) + 0.5


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_it_is_the_minimum_that_others_head_for(classes):
    design, code, weight = drawn(classes)
    found = fit_logit(design, code, weight, 10.0)
    slow = LogisticRegression(C=10.0, max_iter=50_000, tol=1e-9).fit(design, code, sample_weight=weight)
    assert found.converged
    assert found.probs(design) == pytest.approx(slow.predict_proba(design), abs=1e-5)
    assert found.probs(design).sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("classes", [2, 4])
def test_rounding_stays_rounding(classes):
    design, code, weight = drawn(classes, seed=1)
    nudged = design * (1 + 1e-14 * np.random.default_rng(2).normal(size=design.shape))
    one, other = (fit_logit(each, code, weight, 10.0).probs(design) for each in (design, nudged))
    assert np.abs(one - other).max() < 1e-10


def test_classes_that_columns_tell_apart_end_in_a_steep_law_rather_than_in_none():
    x = np.linspace(-1, 1, 200)[:, None]
    found = fit_logit(x, (x[:, 0] > 0).astype(int), np.ones(200), 10.0)
    assert found.converged
    assert found.probs(x)[[0, -1], [0, 1]].min() > 0.95


def test_columns_that_do_not_vary_leave_the_shares():
    found = fit_logit(np.ones((50, 2)), np.arange(50) % 5 // 4, np.ones(50), 10.0)
    assert found.probs(np.ones((1, 2)))[0] == pytest.approx([0.8, 0.2])
