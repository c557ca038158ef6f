"""The paper's kernel closed form is the feature estimator whose tests are the kernel's features."""

import numpy as np
import pytest

import mixope
from mixope.base.errors import UsageError
from mixope.behaviours import Logged
from mixope.estimators import StateRatio
from mixope.estimators.features.ratio import calibrate, calibration_requests, solve_ratios
from mixope.estimators.kernel import KernelRatio, median_kernel, quadratic_form
from mixope.features import NormalisedBumps
from mixope.solvers.linear import Whitening, solve_ratio

from .worlds import TARGET, Counted, drop_ridges, id_columns, id_policies, lq_logs, posed, posed_on_ids

BUMPS = NormalisedBumps(12)


def ratio_and_system(asked):
    """The calibrated ratio with recorded densities, and its moments ready to be solved."""
    problem, weights = asked.problem, dict.fromkeys(asked.problem.labels, 1.0)
    requests = calibration_requests(problem, problem.known.fitted(Logged(), weights), weights, coarse=False)
    sums = asked.rounds.ask(requests)
    ((system, _),) = asked.rounds.run(solve_ratios(problem, requests, sums))
    return calibrate(problem, requests[0], sums[0])[0], system


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
    asked = posed(lq_logs(1, 10, 30), BUMPS, gamma=gamma)
    features, rows = asked.problem.known.state_features, asked.problem.known.sample
    ratio, system = ratio_and_system(asked)
    phi = features.transform(rows.observation)
    gram = phi.T @ phi / len(phi)
    root = Whitening.of(gram).root if whiten else np.diag(1 / np.sqrt(np.diag(gram)))
    kernel = KernelRatio(kernel=inner_product(features, root), behaviour=Logged())
    found, how, _ = kernel._theta(asked.problem, rows, ratio)
    sums = system.sums
    right = None if gamma is None else (1 - gamma) * system.start
    a, e = sums["a"].sum(axis=0) / len(phi), sums["e"].sum(axis=0) / len(phi)
    theta, solved, _ = solve_ratio(a, right, e, gram, whiten_tests=whiten)
    assert found == pytest.approx(theta, abs=1e-8)
    if gamma is not None:
        assert how.residual == pytest.approx(solved.residual, abs=1e-8)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("gamma", [None, 0.8])
def test_on_ids_with_the_delta_kernel_it_is_tabular_emp(monkeypatch, ends, gamma):
    """Ends, starts and the discount enter the masses as they enter the tabular flow."""
    drop_ridges(monkeypatch)
    logs, target = mixope.read(id_columns(ends)), id_policies()[0]
    delta = KernelRatio(kernel=lambda x, y: 1.0 * (x[:, None] == y[None]), behaviour=Counted(), ridge=1e-12)
    expected = mixope.evaluate(logs, mixope.TabularPolicy(target), "emp", gamma=gamma)
    assert posed_on_ids(logs, target, gamma).solve(delta).value == pytest.approx(expected.value, abs=1e-8)


def test_the_paper_form_is_the_double_sum_of_the_appendix():
    asked = posed(lq_logs(1, 6, 15), BUMPS)
    rows, features = asked.problem.known.sample, asked.problem.known.state_features
    ratio, _ = ratio_and_system(asked)
    theta, solved, _ = KernelRatio(form="paper", behaviour=Logged(), ridge=1e-9)._theta(asked.problem, rows, ratio)
    k = median_kernel(rows.observation)(rows.next_observation, rows.next_observation)
    phi, ahead = features.transform(rows.observation), features.transform(rows.next_observation)
    rho = ratio.of(rows)[0]

    def objective(theta):
        delta = ahead @ theta - rho * (phi @ theta)
        return sum(delta[i] * delta[j] * k[i, j] for i in range(len(k)) for j in range(len(k))) / len(k) ** 2

    mean = phi.mean(axis=0)
    assert mean @ theta == pytest.approx(1.0, abs=1e-9)
    assert solved.residual**2 == pytest.approx(objective(theta), rel=1e-6, abs=1e-14)
    for direction in np.random.default_rng(1).normal(size=(3, len(theta))):
        step = 0.05 * (direction - mean * (mean @ direction) / (mean @ mean))
        assert objective(theta + step) > objective(theta)


def test_its_value_is_close_to_emp():
    """In the general form; the paper's has a bias of its own on logs that start from a reset."""
    logs = lq_logs(1, 30, 60)
    features, behaviour = NormalisedBumps(25), Logged()
    emp = mixope.evaluate(logs, TARGET, StateRatio("emp", behaviour=behaviour), features=features)
    kernel = mixope.evaluate(logs, TARGET, KernelRatio(behaviour=behaviour), features=features)
    assert kernel.estimator == "kernel"
    assert abs(kernel.value - emp.value) < 2 * emp.standard_error


def test_without_a_behaviour_the_default_mixture_is_fitted():
    found = mixope.evaluate(lq_logs(1, 6, 15), TARGET, "kernel", features=BUMPS)
    assert found.interval.low < found.value < found.interval.high


def test_what_it_cannot_do_is_refused_with_words():
    logs = lq_logs(1, 6, 15)
    with pytest.raises(UsageError, match="for a horizon use"):
        mixope.evaluate(logs, TARGET, KernelRatio(), horizon=5)
    with pytest.raises(UsageError, match="form='general'"):
        mixope.evaluate(logs, TARGET, KernelRatio(form="paper"), gamma=0.9)
    with pytest.raises(UsageError, match="at most 3000 rows"):
        mixope.evaluate(lq_logs(1, 100, 50), TARGET, KernelRatio(), features=BUMPS)
    with pytest.raises(UsageError, match="'general' or 'paper'"):
        KernelRatio(form="papyrus")
