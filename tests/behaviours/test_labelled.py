"""One Gaussian per labelled logger, against densities known by construction."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from mixope.behaviours import DefaultMixture, MixtureOfExperts, MixtureOfLoggers, behaviour_by_name
from mixope.behaviours import experts as bounds
from mixope.behaviours.gaussian import DEFENSIVE, Choice
from mixope.behaviours.labelled import fit_gate, fit_loggers
from mixope.features import NormalisedBumps
from mixope.features.quadratic import Quadratic

from .test_gaussian import gap, ones, two_loggers
from .test_protocol import make_rows


def many_columns(n=2400, columns=17, components=6, seed=0):
    """Three loggers, linear in as many columns as HalfCheetah has, who differ in the sign of what they do."""
    generator = np.random.default_rng([7, seed])
    weights = np.random.default_rng(3).normal(size=(columns, components)) / columns
    states, who = generator.normal(size=(n, columns)), np.arange(n) % 3
    centre, scale = (who[:, None] - 1) * (2 + states @ weights), 0.3 + 0.1 * who[:, None]
    actions = centre + scale * generator.standard_normal((n, components))
    laws = [norm.logpdf(actions, (k - 1) * (2 + states @ weights), 0.3 + 0.1 * k).sum(axis=1) for k in range(3)]
    mixture = np.logaddexp.reduce(laws, axis=0) - np.log(3)
    return make_rows(states, actions, mixture, np.array(["a", "b", "c"])[who]), np.stack(laws, axis=1)


def prepared(rows, features=None):
    box = MixtureOfLoggers(Quadratic()).fit(rows, ones(rows)).choice.box
    return Choice("", (features or Quadratic()).fit(rows.observation), box).prepare(rows, ones(rows))


def test_the_law_of_every_logger_is_recovered():
    rows, laws = many_columns()
    new, truth = many_columns(seed=1)
    fitted = MixtureOfLoggers().fit(rows, ones(rows))
    assert len(fitted.model.experts) == 3
    assert fitted.notes == ()
    known = fitted.choice.prepare(new)
    each = [expert.log_density(known.design, known.draws) for expert in fitted.model.experts]
    # loggers come in the order of their first rows
    for k, found in enumerate(each):
        mine = new.logger == np.array(["a", "b", "c"])[k]
        assert np.mean(found[mine] - truth[mine, k]) == pytest.approx(0.0, abs=0.3)  # 6 · 35 numbers, 800 rows: .13
    bias, _ = gap(fitted, new)
    assert abs(bias) < 0.3
    assert laws.shape == truth.shape


def test_labels_do_what_rounds_of_em_do_and_come_near_the_truth():
    rows, new = two_loggers(2000, 0), two_loggers(2000, 1)
    fitted = MixtureOfLoggers(NormalisedBumps(12)).fit(rows, ones(rows))
    assert len(fitted.model.experts) == 2
    bias, error = gap(fitted, new)
    assert abs(bias) < 0.03
    assert error < 0.12


def test_the_mixture_is_the_sum_by_hand():
    """b = (1 − ε) Σ_j p(j|s) N(a; xβ_j, σ_j²(1 + 2ℓ_j)) + ε N̄, from the coefficients and scipy's density."""
    rows = two_loggers(600, 0)
    known = prepared(rows)
    model = fit_loggers(known, steady=True)
    x, a, left = known.design, rows.action[:, 0], rows.logger == rows.logger[0]
    total, scores = np.zeros(len(a)), np.exp(x @ model.gate)
    for k, mine in enumerate((left, ~left)):
        gram = x[mine].T @ x[mine] + 1e-4 * np.diag(np.arange(x.shape[1]) > 0)
        beta = np.linalg.solve(gram, x[mine].T @ a[mine])
        variance = np.mean((a[mine] - x[mine] @ beta) ** 2)
        leverage = np.sum(x * np.linalg.solve(gram, x.T).T, axis=1)
        density = norm.pdf(a, x @ beta, np.sqrt(variance * (1 + 2 * leverage)))
        total += scores[:, k] / scores.sum(axis=1) * density
    expected = (1 - DEFENSIVE) * total + DEFENSIVE * norm.pdf(a, a.mean(), a.std())
    np.testing.assert_allclose(model.log_density(known), np.log(expected), atol=1e-6)


def test_the_shares_solve_the_equations_of_the_logit():
    """Σ c x (r − p) = λ w at the optimum; with a constant alone, shares are the weighted frequencies."""
    rows = two_loggers(500, 0)
    weight = np.random.default_rng(0).uniform(0.5, 2, 500)
    share = np.stack([rows.logger == "left", rows.logger == "right"], axis=1).astype(float)
    gate, converged = fit_gate(np.ones((500, 1)), share, weight)
    frequencies = np.exp(gate[0]) / np.exp(gate[0]).sum()
    np.testing.assert_allclose(frequencies, weight @ share / weight.sum(), atol=1e-5)
    x = np.concatenate([np.ones((500, 1)), rows.observation], axis=1)
    gate, converged = fit_gate(x, share, weight)
    assert converged
    p = np.exp(x @ gate) / np.exp(x @ gate).sum(axis=1, keepdims=True)
    slope = x.T @ (weight[:, None] * (share - p)) - np.array([0.0, 1.0, 1.0])[:, None] * gate
    assert np.abs(slope).max() < 1e-3 * weight.sum()


def test_telling_loggers_apart_who_do_the_same_costs_little():
    rows, _ = many_columns(900, 3, 1)
    noise = np.random.default_rng(0).standard_normal((900, 1))
    rows = replace(rows, action=rows.observation[:, :1] + 0.5 * noise)
    truth = norm.logpdf(rows.action[:, 0], rows.observation[:, 0], 0.5)
    fitted = MixtureOfLoggers().fit(rows, ones(rows))
    assert fitted.choice.held_out > truth.mean() - 0.03


def test_what_loggers_are_called_does_not_matter():
    rows = two_loggers(600, 0)
    renamed = replace(rows, logger=np.where(rows.logger == "left", "z", "a"))
    behaviour = MixtureOfLoggers(NormalisedBumps(12))
    before, after = (behaviour.fit(each, ones(each)).log_prob(each) for each in (rows, renamed))
    np.testing.assert_allclose(before, after, rtol=0, atol=1e-10)


@pytest.mark.parametrize("odd", ["few rows", "one action"])
def test_a_logger_without_a_model_of_its_own_shares_the_one_of_all_rows(odd):
    rows = two_loggers(600, 0)
    mine = np.arange(600) < (10 if odd == "few rows" else 60)
    rows = replace(rows, logger=np.where(mine, "odd", rows.logger))
    if odd == "one action":
        rows = replace(rows, action=np.where(mine[:, None], 0.25, rows.action))
    fitted = MixtureOfLoggers(NormalisedBumps(12)).fit(rows, ones(rows))
    assert len(fitted.model.experts) == 3
    assert np.isfinite(fitted.log_prob(rows)).all()


def test_the_default_for_labelled_vectors_tells_loggers_apart():
    rows = two_loggers(600, 0)
    assert isinstance(behaviour_by_name("loggers"), MixtureOfLoggers)
    default, named = (b.fit(rows, ones(rows)).log_prob(rows) for b in (DefaultMixture(), MixtureOfLoggers()))
    np.testing.assert_array_equal(default, named)


def test_experts_say_how_many_rows_they_were_fitted_to(monkeypatch):
    monkeypatch.setattr(bounds, "MOST_WORK", 1e4)
    rows = two_loggers(600, 0)
    fitted = MixtureOfExperts(2, NormalisedBumps(12)).fit(rows, ones(rows))
    assert fitted.notes == (
        "experts were fitted to 130 of 600 rows of the sample, to bound the time that it takes with 13 features and 1"
        " components of the action",
    )


def test_experts_use_all_rows_where_that_takes_little_time():
    rows = two_loggers(600, 0)
    fitted = MixtureOfExperts(2, NormalisedBumps(12)).fit(rows, ones(rows))
    assert not any("experts were fitted" in note for note in fitted.notes)
