"""``evaluate(interval=…)``: every name against a slow or independent way to the same interval."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

import mixope
from mixope.answers.resampling import prepare
from mixope.base.errors import DataError, UnknownName, UsageError
from mixope.base.pool import shared
from mixope.estimators import LoggedMean
from mixope.session.session import count
from mixope.uncertainty import INTERVALS, IntervalChoice, choose_interval
from mixope.worlds import simulate, truth

from .logs import chain_log, ending_log, factored_log, resampled

pytestmark = pytest.mark.long


def episode_means(columns):
    return np.array([columns["reward"][columns["episode_id"] == e].mean() for e in np.unique(columns["episode_id"])])


def weighted_returns(columns, target):
    """W_e × mean reward of every episode: what plain importance sampling averages."""
    found = []
    for e in np.unique(columns["episode_id"]):
        mine = columns["episode_id"] == e
        ratio = target[columns["observation"][mine], columns["action"][mine]] / columns["action_prob"][mine]
        found.append(ratio.prod() * columns["reward"][mine].mean())
    return np.array(found)


def long_log(model, loggers, episodes, steps, seed):
    return simulate(model, loggers[:1], episodes, steps, seed=seed)


# --- from scores ---


def t_of(scores):
    """23 degrees of freedom, or fewer where a few episodes decide."""
    kurtosis = 24 * np.sum(scores**4) / np.sum(scores**2) ** 2
    return stats.t(min(23, max(10, 48 / (kurtosis - 1))))


@pytest.mark.parametrize(("name", "law"), [("t", t_of), ("normal", lambda _: stats.norm), ("clustered", t_of)])
@pytest.mark.parametrize("estimator", ["logged-mean", "is"])
def test_t_and_normal_are_the_hand_formula(name, law, estimator):
    _, target, _, columns = chain_log(seed=3)
    sample = episode_means(columns) if estimator == "logged-mean" else weighted_returns(columns, target)
    estimand = {} if estimator == "logged-mean" else {"horizon": 15}
    found = mixope.evaluate(columns, mixope.TabularPolicy(target), estimator, level=0.9, interval=name, **estimand)
    error = stats.sem(sample)
    assert found.value == pytest.approx(sample.mean())
    assert found.standard_error == pytest.approx(error)
    reach = law(found.scores).ppf([0.05, 0.95]) * error
    assert (found.interval.low, found.interval.high) == pytest.approx(sample.mean() + reach)


def profile_deviance(sample, mean):
    """−2 log of the largest Π n p over probabilities p with this mean, by brute force over p."""
    n = len(sample)
    limits = [{"type": "eq", "fun": lambda p: p.sum() - 1}, {"type": "eq", "fun": lambda p: p @ sample - mean}]
    start = np.full(n, 1.0 / n)
    found = optimize.minimize(
        lambda p: -2 * np.sum(np.log(n * p)), start, bounds=[(1e-9, 1)] * n, constraints=limits, options={"ftol": 1e-12}
    )
    return found.fun


def test_likelihood_ends_where_the_brute_force_profile_does():
    _, target, _, columns = chain_log(seed=4, episodes=8)
    found = mixope.evaluate(columns, mixope.TabularPolicy(target), "logged-mean", interval="likelihood").interval
    sample, limit = episode_means(columns), stats.chi2.ppf(0.95, 1)
    for end in (found.low, found.high):
        assert profile_deviance(sample, end) == pytest.approx(limit, rel=1e-3)


# --- from refits ---


def slow_replicates(columns, target, estimator, seed, number):
    """Rows of the drawn episodes copied, and the whole of evaluate run on each copy."""
    policy = mixope.TabularPolicy(target)
    refit = prepare(count(columns), policy, "logged-mean", seed=seed)
    copies = [resampled(columns, refit.weights(b)) for b in range(number)]
    return np.array([mixope.evaluate(copy, policy, estimator, seed=seed).value for copy in copies])


@pytest.mark.parametrize("estimator", ["emp", "is", "wis-step", "mis"])
def test_bootstrap_intervals_are_those_of_evaluate_run_on_repeated_episodes(estimator):
    _, target, _, columns = chain_log(seed=5)
    policy = mixope.TabularPolicy(target)
    options = {"replicates": 30, "seed": 8, "level": 0.8}
    values = slow_replicates(columns, target, estimator, 8, 30)
    percentile = mixope.evaluate(columns, policy, estimator, interval="percentile", **options)
    assert (percentile.interval.low, percentile.interval.high) == pytest.approx(np.quantile(values, [0.1, 0.9]))
    assert percentile.standard_error == pytest.approx(np.std(values, ddof=1))

    bca = mixope.evaluate(columns, policy, estimator, interval="bootstrap", **options)
    scores = mixope.evaluate(columns, policy, estimator, seed=8).scores
    below = np.mean(values < bca.value) + np.mean(values == bca.value) / 2
    z0, a = stats.norm.ppf(below), np.sum(scores**3) / (6 * np.sum(scores**2) ** 1.5)
    z = z0 + stats.norm.ppf([0.1, 0.9])
    wanted = np.quantile(values, stats.norm.cdf(z0 + z / (1 - a * z)))
    assert (bca.interval.low, bca.interval.high) == pytest.approx(wanted)
    assert bca.interval.method == "episode bootstrap, BCa, 30 refits"
    assert bca.value == percentile.value


def test_a_plug_in_without_scores_has_bootstrap_intervals_and_no_other():
    _, policy, columns = factored_log(seed=2)
    found = mixope.evaluate(columns, policy, "lstdq", interval="bca", replicates=20, jobs=1)
    assert found.interval.low < found.value < found.interval.high
    with pytest.raises(UsageError, match=r"'lstdq' has no interval 't' here: .*refit with 'bca'"):
        mixope.evaluate(columns, policy, "lstdq", interval="t")
    assert mixope.evaluate(columns, policy, "lstdq").interval is None


def test_only_the_answer_is_refitted_and_not_what_stands_beside_it():
    _, policy, columns = factored_log(seed=2)
    found = mixope.evaluate(columns, policy, interval="percentile", replicates=10, jobs=1)
    assert found.estimator == "dr"
    assert found.interval.method.startswith("episode bootstrap, percentile, 10 refits")
    assert [(e.estimator, e.interval.method) for e in found.beside] == [("emp", "clustered score, t + approximation")]


def test_any_number_of_processes_gives_the_same_bytes():
    _, target, _, columns = ending_log(seed=1)
    policy = mixope.TabularPolicy(target)
    options = {"interval": "bca", "replicates": 20, "seed": 3}
    alone, shared = (mixope.evaluate(columns, policy, "emp", jobs=jobs, **options).to_json() for jobs in (1, 2))
    assert alone == shared
    record = json.loads(alone)
    assert record["interval"] | {"low": 0, "high": 0} == {
        "low": 0,
        "high": 0,
        "level": 0.95,
        "method": "episode bootstrap, BCa, 20 refits",
        "replicates": 20,
        "failed": 0,
    }
    assert record["provenance"]["seed"] == 3


def test_refits_that_fail_are_counted_and_told():
    _, target, _, columns = chain_log(seed=1)

    class Modest:
        """Refuses logs that earn more than these."""

        name = "modest"

        def solve(self, problem):
            solution = yield from LoggedMean().solve(problem)
            if solution.value > columns["reward"].mean() + 0.05:
                raise DataError("these logs earn too much")
            return solution

    found = mixope.evaluate(
        columns, mixope.TabularPolicy(target), Modest(), interval="percentile", replicates=40, jobs=1
    )
    failed = found.interval.failed
    assert 0 < failed < 20
    assert found.interval.replicates == 40 - failed
    assert f"{failed} of 40 refits could not be solved and were left out: these logs earn too much" in found.alerts


def workers():
    """Processes of the pool that this one started."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command, status = (place / "cmdline").read_text(), (place / "status").read_text()
        except OSError:  # it ended meanwhile
            continue
        if "mixope.base.pool" in command and f"PPid:\t{os.getpid()}\n" in status:
            found.append(place.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks for processes in /proc")
def test_an_interruption_ends_the_processes():
    _, target, _, columns = chain_log(seed=1)
    shared(0).close()  # processes that other tests left for the next work
    seen, others = [], set(workers())  # an engine may have some of its own

    def interrupt(done, total):
        seen.extend(set(workers()) - others)
        raise KeyboardInterrupt

    choice = IntervalChoice("percentile", 40, jobs=2, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        mixope.evaluate(columns, mixope.TabularPolicy(target), "emp", interval=choice)
    assert len(seen) == 2
    assert not set(workers()) - others


# --- blocks ---


def test_blocks_of_one_long_episode_cover_and_are_said():
    model, target, loggers, _ = chain_log(seed=0)
    wanted, hits, logs = truth.average(model, target), 0, 35
    for seed in range(logs):
        found = mixope.evaluate(long_log(model, loggers, 1, 1500, seed), mixope.TabularPolicy(target), "emp")
        hits += found.interval.low <= wanted <= found.interval.high
    assert 0.88 <= hits / logs <= 1.0
    assert found.interval.method.startswith("batch means, ")
    assert found.interval.method.endswith(" steps")
    assert any("there is 1 episode: the interval rests on" in alert for alert in found.alerts)
    (check,) = (d for d in found.diagnostics if d.name == "episodes")
    assert (check.status, "blocks of steps" in check.sentence) == ("warn", True)


def autoregressive_log(rho, steps, seed):
    """One state, one action, and rewards that remember: an AR(1) with mean 0 and unit innovations."""
    noise = np.random.default_rng([seed, 5]).normal(size=steps)
    reward = np.empty(steps)
    reward[0] = noise[0]
    for t in range(1, steps):
        reward[t] = rho * reward[t - 1] + noise[t]
    zeros = np.zeros(steps, dtype=int)
    return {"episode_id": zeros, "step": np.arange(steps), "observation": zeros, "action": zeros, "reward": reward}


def test_blocks_know_that_steps_depend_on_each_other():
    """The standard error of the mean of an AR(1) is 1/((1−ρ)√n), five times that of independent steps at ρ = .8."""
    hits, errors, logs, n = 0, [], 60, 2000
    for seed in range(logs):
        columns = autoregressive_log(0.8, n, seed)
        found = mixope.evaluate({**columns, "next_observation": columns["observation"]}, np.ones((1, 1)), "emp")
        hits += found.interval.low <= 0.0 <= found.interval.high
        errors.append(found.standard_error)
    assert 0.86 <= hits / logs <= 1.0
    assert np.mean(errors) == pytest.approx(5 / np.sqrt(n), rel=0.15)


def test_a_few_long_episodes_are_cut_and_a_few_short_ones_are_not():
    model, target, loggers, _ = chain_log(seed=0)
    policy = mixope.TabularPolicy(target)
    long = long_log(model, loggers, 4, 600, 1)
    found = mixope.evaluate(long, policy, "emp")
    assert "blocks of" in found.interval.method
    assert any("there are 4 episodes: the interval rests on" in alert for alert in found.alerts)
    asked = mixope.evaluate(long, policy, "emp", interval="t")
    assert asked.interval.method == "clustered score, t"
    assert any("4 episodes" in alert for alert in asked.alerts)
    assert found.interval.width < asked.interval.width
    assert mixope.evaluate(long, policy, "wis-step").interval.method == "clustered score, t"
    short = mixope.evaluate(long_log(model, loggers, 4, 400, 1), policy, "emp")
    assert short.interval.method == "clustered score, t"


def test_no_block_goes_on_into_the_next_episode():
    """As many episodes as blocks, each shorter than a block: blocks are then the episodes."""
    model, target, loggers, _ = chain_log(seed=0)
    columns = long_log(model, loggers, 60, 12, 1)
    blocks, t = (
        mixope.evaluate(columns, mixope.TabularPolicy(target), "logged-mean", interval=name) for name in ("blocks", "t")
    )
    assert blocks.interval.method == "batch means, 60 blocks of 27 steps"
    assert blocks.standard_error == pytest.approx(t.standard_error)


# --- what cannot be had, and few episodes ---


def test_what_cannot_be_had_is_refused_with_what_can():
    model, target, loggers, columns = chain_log(seed=0)
    policy = mixope.TabularPolicy(target)
    with pytest.raises(UnknownName, match="Did you mean 'likelihood'"):
        mixope.evaluate(columns, policy, interval="likelyhood")
    with pytest.raises(UsageError, match="weighs whole episodes, which cannot be cut into blocks; choose t"):
        mixope.evaluate(columns, policy, "wis", interval="blocks")
    with pytest.raises(UsageError, match="blocks are for the long-run average and discounted values"):
        mixope.evaluate(columns, policy, "emp", horizon=5, interval="blocks")
    with pytest.raises(UsageError, match="one long episode has blocks of steps"):
        mixope.evaluate(long_log(model, loggers, 1, 100, 0), policy, "emp", interval="bca", replicates=4)
    with pytest.raises(UsageError, match="at least two episodes"):
        mixope.evaluate(long_log(model, loggers, 1, 100, 0), policy, "emp", interval="t")
    for wrong in ({"replicates": 1}, {"replicates": 2.5}, {"jobs": 0}, {"jobs": True}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            mixope.evaluate(columns, policy, interval="bca", **wrong)


def test_a_comparison_keeps_an_estimate_without_the_interval_and_says_why():
    _, target, _, columns = chain_log(seed=0)
    table = mixope.compare(columns, {"new": target}, ["emp", "wis"], interval="blocks")
    assert "blocks" in table["new", "emp"].interval.method
    lone = table["new", "wis"]
    assert lone.interval is None
    assert any("wis has no interval 'blocks': it weighs whole episodes" in alert for alert in lone.alerts)


def test_a_comparison_refits_every_estimate():
    _, target, _, columns = chain_log(seed=0)
    targets = {"new": mixope.TabularPolicy(target), "flat": np.full(target.shape, 1 / target.shape[1])}
    table = mixope.compare(columns, targets, ["emp", "is"], interval="percentile", replicates=12, jobs=1, seed=2)
    assert {e.interval.method for e in table} == {"episode bootstrap, percentile, 12 refits"}
    alone = mixope.evaluate(columns, targets["flat"], "is", interval="percentile", replicates=12, jobs=1, seed=2)
    assert table["flat", "is"].interval == alone.interval


@pytest.mark.parametrize("name", ["t", "normal", "likelihood", "percentile"])
def test_few_episodes_are_said_everywhere(name):
    _, target, _, columns = chain_log(seed=0, episodes=6)
    found = mixope.evaluate(columns, mixope.TabularPolicy(target), "emp", interval=name, replicates=10, jobs=1)
    said = "there are 6 episodes: a standard error from so few clusters is itself uncertain"
    (check,) = (d for d in found.diagnostics if d.name == "episodes")
    assert check.status == "warn"
    assert said in found.full()
    assert any(said in alert for alert in json.loads(found.to_json())["alerts"])
    assert said in found._repr_html_()


def test_a_choice_is_a_record_that_checks_itself():
    assert choose_interval("clustered") == IntervalChoice("t")
    assert choose_interval("bootstrap", 100, 2) == IntervalChoice("bca", 100, 2)
    assert choose_interval(IntervalChoice("blocks")).name == "blocks"
    assert {choose_interval(name).name for name in INTERVALS} == set(INTERVALS)
    assert choose_interval("bca").without_refits == IntervalChoice("auto")
    assert choose_interval("normal").without_refits == IntervalChoice("normal")
