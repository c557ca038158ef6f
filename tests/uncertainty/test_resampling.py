"""Re-weighted counts are resampled logs, whatever the estimator, and however many processes share the work."""

import numpy as np
import pytest

import mixope
from mixope.answers.resampling import (
    episode_counts,
    episode_counts_request,
    influence,
    prepare,
    resample,
)
from mixope.base.errors import DataError, UsageError
from mixope.base.estimand import Estimand
from mixope.estimators import LoggedMean, make
from mixope.requests.scores import ScoreTable
from mixope.session.session import count
from mixope.worlds import simulate
from solving import solved

from .logs import chain_log, ending_log, factored_log, resampled


def count_episodes(counted):
    (groups,) = counted.rounds().ask([episode_counts_request(counted)])
    return episode_counts(groups, counted.transitions)


def bootstrap(counted, target, estimator, *, replicates, jobs=None, progress=False, seed=0):
    return resample(prepare(counted, target, estimator, seed=seed), replicates, jobs=jobs, progress=progress)


TABULAR = ("emp", "emp-single", "kl-emp", "bch", "bch-pooled", "known-mixture", "model", "mwl", "logged-mean")
TRAJECTORY = ("is", "wis", "is-step", "wis-step", "mis", "mis-step")
ESTIMANDS = (Estimand(), Estimand("discounted", gamma=0.8), Estimand("horizon", horizon=6))


def known(loggers):
    return {f"logger-{j}": mixope.TabularPolicy(law) for j, law in enumerate(loggers)}


@pytest.mark.parametrize("estimator", [*TABULAR, *TRAJECTORY])
@pytest.mark.parametrize("make_log", [chain_log, ending_log])
def test_a_replicate_equals_rows_resampled_and_read_anew(estimator, make_log):
    _, target, loggers, columns = make_log(seed=3)
    refit = prepare(count(columns), mixope.TabularPolicy(target), estimator, loggers=known(loggers), seed=11)
    for number in range(3):
        logs = resampled(columns, refit.weights(number))
        slow = mixope.evaluate(logs, mixope.TabularPolicy(target), estimator, loggers=known(loggers), seed=11)
        assert refit.replicate(number) == pytest.approx(slow.value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("estimator", ["emp", "bch-pooled", "wis-step"])
@pytest.mark.parametrize("estimand", ESTIMANDS, ids=str)
def test_a_replicate_keeps_the_estimand(estimator, estimand):
    _, target, loggers, columns = ending_log(seed=1)
    refit = prepare(count(columns), mixope.TabularPolicy(target), estimator, estimand=estimand, loggers=known(loggers))
    logs = resampled(columns, refit.weights(0))
    slow = mixope.evaluate(
        logs, mixope.TabularPolicy(target), estimator, estimand=estimand, loggers=known(loggers), seed=0
    )
    assert refit.replicate(0) == pytest.approx(slow.value, rel=1e-9)


@pytest.mark.parametrize("estimator", ["dr", "lstdq", "emp"])
def test_a_replicate_on_factors_equals_rows_resampled_and_read_anew(estimator):
    _, policy, columns = factored_log(seed=2)
    refit = prepare(count(columns), policy, estimator, seed=4)
    slow = mixope.evaluate(resampled(columns, refit.weights(1)), policy, estimator, seed=4)
    assert refit.replicate(1) == pytest.approx(slow.value, rel=1e-9)


def test_propensities_counted_a_logger_are_counted_again():
    _, target, _, columns = chain_log(seed=5)
    del columns["action_prob"]
    refit = prepare(count(columns), mixope.TabularPolicy(target), "is-step")
    slow = mixope.evaluate(resampled(columns, refit.weights(2)), mixope.TabularPolicy(target), "is-step")
    assert refit.replicate(2) == pytest.approx(slow.value, rel=1e-9)
    assert refit.replicate(2) != refit.replicate(3)


@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_every_engine_counts_episodes_alike(engine):
    columns = ending_log(seed=8)[3]
    counts, other = (count_episodes(count(mixope.read(columns), name)) for name in (engine, None))
    np.testing.assert_array_equal(counts.episode, other.episode)
    np.testing.assert_array_equal(counts.group, other.group)
    for name, values in counts.sums.items():
        np.testing.assert_allclose(values, other.sums[name], rtol=1e-12)


def test_weights_of_one_give_the_counts_back():
    counted = count(chain_log(seed=0)[3])
    counts = count_episodes(counted)
    again = counts.reweighted(np.ones(counts.n_episodes))
    for name in ("state", "action", "next_state", "rows", "lowest", "starts"):
        np.testing.assert_array_equal(getattr(again, name), getattr(counted.transitions, name))
    np.testing.assert_allclose(again.inverse, counted.transitions.inverse)


def test_every_logger_keeps_its_number_of_episodes():
    _, target, _, columns = chain_log(seed=0, episodes=25)
    refit = prepare(count(columns), mixope.TabularPolicy(target), "emp")
    for number in range(5):
        drawn = np.bincount(refit.counts.logger, weights=refit.weights(number))
        np.testing.assert_array_equal(drawn, [13, 12])


@pytest.mark.long
def test_the_result_does_not_depend_on_the_number_of_processes():
    _, target, _, columns = chain_log(seed=1)
    refit = prepare(count(columns), mixope.TabularPolicy(target), "emp", seed=9)
    alone, shared = resample(refit, 24, jobs=1), resample(refit, 24, jobs=2)
    np.testing.assert_array_equal(alone.values, shared.values)
    assert not np.array_equal(
        alone.values, bootstrap(count(columns), refit.problem.target, "emp", replicates=24).values
    )


def test_progress_is_told_to_the_end(capsys):
    _, target, _, columns = chain_log(seed=1)
    told = []
    options = {"replicates": 12, "jobs": 1}
    bootstrap(
        count(columns),
        mixope.TabularPolicy(target),
        "emp",
        progress=lambda done, all_: told.append((done, all_)),
        **options,
    )
    assert told[-1] == (12, 12)
    bootstrap(count(columns), mixope.TabularPolicy(target), "emp", progress=True, **options)
    assert "12/12" in capsys.readouterr().err


def test_replicates_that_refuse_are_counted():
    _, target, _, columns = chain_log(seed=1)
    counted, policy = count(columns), mixope.TabularPolicy(target)
    every = bootstrap(counted, policy, "logged-mean", replicates=40, seed=2)
    most = float(np.median(every.values))
    sample = bootstrap(counted, policy, Modest(max(most, every.estimate)), replicates=40, seed=2)
    assert 0 < sample.failed <= 20
    assert sample.reasons == ("these logs earn too much",)
    np.testing.assert_array_equal(np.sort(sample.values), np.sort(every.values)[: 40 - sample.failed])


class Modest:
    """Refuses logs that earn more than it is used to."""

    name = "modest"

    def __init__(self, most):
        self.most = most

    def solve(self, problem):
        solution = yield from LoggedMean().solve(problem)
        if solution.value > self.most:
            raise DataError("these logs earn too much")
        return solution


def test_a_bootstrap_that_mostly_fails_is_an_error():
    _, target, _, columns = chain_log(seed=1)

    class Twice:
        """Solves the whole log, to see what it asks for and what it says, and nothing else."""

        name = "twice"
        asked = 0

        def solve(self, problem):
            Twice.asked += 1
            if Twice.asked > 2:
                raise DataError("asked once too often")
            return LoggedMean().solve(problem)

    with pytest.raises(DataError, match="10 of 10 resampled logs cannot be evaluated: asked once too often"):
        bootstrap(count(columns), mixope.TabularPolicy(target), Twice(), replicates=10, jobs=1)


@pytest.mark.long
def test_the_bootstrap_spread_is_near_the_clustered_error():
    _, target, _, columns = chain_log(seed=2, episodes=80)
    policy = mixope.TabularPolicy(target)
    for estimator in ("emp", "bch-pooled", "wis-step"):
        sample = bootstrap(count(columns), policy, estimator, replicates=300, seed=1)
        error = mixope.evaluate(columns, policy, estimator).standard_error
        assert sample.standard_error == pytest.approx(error, rel=0.3)


def test_leaving_out_episodes_tells_what_scores_tell():
    _, target, _, columns = chain_log(seed=2, episodes=60)
    refit = prepare(count(columns), mixope.TabularPolicy(target), "emp")
    scores = influence(refit)
    found = np.array([refit.without(e) for e in range(60)])
    assert np.corrcoef(found.mean() - found, scores)[0, 1] > 0.98


def test_an_estimator_without_scores_has_a_bca_interval_by_leaving_out():
    _, policy, columns = factored_log(seed=2)
    sample = bootstrap(count(columns), policy, "lstdq", replicates=20, jobs=1)
    assert sample.influence is not None
    assert sample.interval().low < sample.estimate < sample.interval().high


def test_a_policy_that_is_a_function_is_asked_once():
    _, target, _, columns = chain_log(seed=6)
    calls = []

    def policy(observations):
        calls.append(len(observations))
        return target[observations]

    called = mixope.CallablePolicy(policy, actions=np.arange(target.shape[1]))
    refit = prepare(count(columns), called, "emp")
    before = len(calls)
    same = prepare(count(columns), mixope.TabularPolicy(target), "emp")
    assert refit.replicate(0) == pytest.approx(same.replicate(0), rel=1e-12)
    assert len(calls) == before


def test_one_episode_is_refused_with_the_way_on():
    _, target, _, columns = chain_log(seed=0)
    only = {name: values[columns["episode_id"] == 0] for name, values in columns.items()}
    with pytest.raises(DataError, match="interval='blocks'"):
        bootstrap(count(only), mixope.TabularPolicy(target), "emp", replicates=3)


def test_one_long_episode_has_blocks():
    model, target, loggers, _ = chain_log(seed=0)
    policy = mixope.TabularPolicy(target)
    columns = simulate(model, loggers[:1], 1, 4000, seed=3)
    found = mixope.evaluate(columns, policy, "emp")
    assert found.interval.low < found.value < found.interval.high
    assert "batch means" in found.interval.method
    many = simulate(model, loggers[:1], 40, 100, seed=3)
    assert found.standard_error == pytest.approx(mixope.evaluate(many, policy, "emp").standard_error, rel=0.4)
    short = {name: column[:30] for name, column in columns.items()}
    assert mixope.evaluate(short, policy, "emp").interval is None
    assert mixope.evaluate(columns, policy, "wis").interval is None


@pytest.mark.parametrize("estimator", ["emp", "bch-pooled"])
def test_row_scores_add_up_to_episode_scores(estimator):
    _, target, loggers, columns = ending_log(seed=4)
    counted = count(columns)
    refit = prepare(counted, mixope.TabularPolicy(target), estimator, loggers=known(loggers))
    (rows,) = counted.rounds().ask([refit.problem.steps_in_order()])
    rows = rows.in_key_order()
    table = ScoreTable(solved(make(estimator), refit.problem).scores.by_cluster)
    by_row = np.bincount(rows.episodes.episode, weights=rows.scores(table))
    np.testing.assert_allclose(by_row, refit.counts.scores(table).by_cluster, atol=1e-14)


def test_wrong_options_are_refused():
    _, target, _, columns = chain_log(seed=0)
    policy = mixope.TabularPolicy(target)
    with pytest.raises(UsageError, match="at least one replicate"):
        bootstrap(count(columns), policy, "emp", replicates=0)
    with pytest.raises(UsageError, match="'bca' or 'percentile'"):
        bootstrap(count(columns), policy, "emp", replicates=4).interval(method="basic")
