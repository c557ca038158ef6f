"""The paper's kernel closed form is the feature estimator whose tests are the kernel's features."""

import numpy as np
import pytest

import mixope
from mixope.behaviours.logged_rows import LoggedRows
from mixope.errors import UsageError
from mixope.estimators.vector import VectorRatio
from mixope.estimators.vector.kernel import KernelRatio, median_kernel, quadratic_form
from mixope.features import NormalisedBumps, OneHot
from mixope.solvers.linear import Whitening, solve_ratio

from .worlds import TARGET, Counted, drop_ridges, id_columns, id_policies, id_problem, lq_logs, lq_problem

BUMPS = NormalisedBumps(12)


def one(rows):
    return np.ones(len(rows))


def inner_product(features, root):
    """k(x, y) = ψ(x)·ψ(y), ψ = rootᵀφ."""

    def kernel(left, right):
        return (features.transform(left) @ root) @ (features.transform(right) @ root).T

    return kernel


def test_the_quadratic_form_equals_a_slow_double_loop():
    generator = np.random.default_rng(0)
    points, masses = generator.normal(size=(30, 2)), generator.normal(size=(30, 3))
    slow = np.zeros((3, 3))
    for x, a in zip(points, masses, strict=True):
        for y, b in zip(points, masses, strict=True):
            slow += np.outer(a, b) * np.exp(-0.5 * np.sum((x - y) ** 2))

    def kernel(left, right):
        return np.exp(-0.5 * ((left[:, None] - right[None]) ** 2).sum(axis=2))

    assert quadratic_form(kernel, points, masses) == pytest.approx(slow, abs=1e-10)


@pytest.mark.parametrize("gamma", [None, 0.9])
@pytest.mark.parametrize("whiten", [True, False])
def test_a_finite_kernel_gives_the_linear_solution_with_its_tests(gamma, whiten):
    problem = lq_problem(lq_logs(1, 10, 30), BUMPS, gamma=gamma)
    features = problem.state_features
    linear = problem.ratio("logged", problem.fitted(LoggedRows(), "logged"), one)
    phi = features.transform(problem.scan.sample.observation)
    gram = phi.T @ phi / len(phi)
    root = Whitening.of(gram).root if whiten else np.diag(1 / np.sqrt(np.diag(gram)))
    fit = KernelRatio(kernel=inner_product(features, root), behaviour=LoggedRows()).fit(problem)
    sums = linear._moments
    right = None if gamma is None else (1 - gamma) * sums["b"]
    a, e = sums["a"].sum(axis=0) / len(phi), sums["e"].sum(axis=0) / len(phi)
    theta, solved, _ = solve_ratio(a, right, e, gram, whiten_tests=whiten)
    assert fit.whole[0] == pytest.approx(theta, abs=1e-8)
    if gamma is not None:
        assert fit.whole[1].residual == pytest.approx(solved.residual, abs=1e-8)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("gamma", [None, 0.8])
def test_on_ids_with_the_delta_kernel_it_is_tabular_emp(monkeypatch, ends, gamma):
    """Ends, starts and the discount enter the masses as they enter the tabular flow."""
    drop_ridges(monkeypatch)
    logs, target = mixope.read(id_columns(ends)), id_policies()[0]
    problem = id_problem(logs, target, gamma)
    delta = KernelRatio(kernel=lambda x, y: 1.0 * (x[:, None] == y[None]), behaviour=Counted(), ridge=1e-12)
    expected = mixope.evaluate(logs, mixope.TabularPolicy(target), "emp", gamma=gamma)
    assert delta.solve(problem).value == pytest.approx(expected.value, abs=1e-8)
    assert problem.features == OneHot()


def test_the_paper_form_is_the_double_sum_of_the_appendix():
    problem = lq_problem(lq_logs(1, 6, 15), BUMPS)
    fit = KernelRatio(form="paper", behaviour=LoggedRows(), ridge=1e-9).fit(problem)
    rows, features = fit.rows, problem.state_features
    k = median_kernel(rows.observation)(rows.next_observation, rows.next_observation)
    phi, ahead = features.transform(rows.observation), features.transform(rows.next_observation)
    rho = fit.linear.ratio(rows, phi)

    def objective(theta):
        delta = ahead @ theta - rho * (phi @ theta)
        return sum(delta[i] * delta[j] * k[i, j] for i in range(len(k)) for j in range(len(k))) / len(k) ** 2

    theta = fit.whole[0]
    mean = phi.mean(axis=0)
    assert mean @ theta == pytest.approx(1.0, abs=1e-9)
    assert fit.whole[1].residual ** 2 == pytest.approx(objective(theta), rel=1e-6, abs=1e-14)
    for direction in np.random.default_rng(1).normal(size=(3, len(theta))):
        step = 0.05 * (direction - mean * (mean @ direction) / (mean @ mean))
        assert objective(theta + step) > objective(theta)


def test_its_value_is_close_to_emp():
    """In the general form; the paper's has a bias of its own on logs that start from a reset."""
    logs = lq_logs(1, 30, 60)
    features, behaviour = NormalisedBumps(25), LoggedRows()
    emp = mixope.evaluate(logs, TARGET, VectorRatio("emp", behaviour=behaviour), features=features)
    kernel = mixope.evaluate(logs, TARGET, KernelRatio(behaviour=behaviour), features=features)
    assert kernel.estimator == "kernel"
    assert abs(kernel.value - emp.value) < 2 * emp.standard_error


def test_what_it_cannot_do_is_refused_with_words():
    logs = lq_logs(1, 6, 15)
    with pytest.raises(UsageError, match="no horizon"):
        mixope.evaluate(logs, TARGET, KernelRatio(), horizon=5)
    with pytest.raises(UsageError, match="form='general'"):
        mixope.evaluate(logs, TARGET, KernelRatio(form="paper"), gamma=0.9)
    with pytest.raises(UsageError, match="'general' or 'paper'"):
        KernelRatio(form="papyrus")
