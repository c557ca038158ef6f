"""The distribution of returns: against slow loops, on policy, against simulated truth; and where it is refused."""

import json

import numpy as np
import pytest

import mixope
from mixope.base.errors import DataError, UsageError
from mixope.distributions import weighted_quantile
from mixope.worlds import simulate
from uncertainty.logs import chain_log, ending_log


def episodes_of(columns, target):
    """Weight and mean reward of every episode of a log with recorded propensities."""
    weights, returns = [], []
    for e in np.unique(columns["episode_id"]):
        mine = columns["episode_id"] == e
        ratio = target[columns["observation"][mine], columns["action"][mine]] / columns["action_prob"][mine]
        weights.append(ratio.prod())
        returns.append(columns["reward"][mine].mean())
    return np.array(weights) / np.sum(weights), np.array(returns)


def slow_tail(w, y, alpha):
    """The worst share of the weight, episode by episode; the last one counts in part."""
    left, total = alpha, 0.0
    for k in np.argsort(y):
        part = min(w[k], left)
        total, left = total + part * y[k], left - part
    return total / alpha


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.5])
def test_exact_weights_give_the_slow_loop(alpha):
    _, target, _, columns = chain_log(seed=2, episodes=60, horizon=6)
    w, y = episodes_of(columns, target)
    found = mixope.returns(columns, mixope.TabularPolicy(target), alpha=alpha, horizon=6).main
    assert found.mean.value == pytest.approx(w @ y)
    assert found.tail.value == pytest.approx(slow_tail(w, y, alpha))
    assert found.effective_episodes == pytest.approx(1 / np.sum(w**2))
    for amount, share in zip(found.quantiles, (0.05, 0.25, 0.5, 0.75, 0.95), strict=True):
        below, up_to = w[y < amount.value - 1e-12].sum(), w[y <= amount.value + 1e-12].sum()
        assert below < share <= up_to
    for point in found.distribution:
        assert point.share == pytest.approx(w[y <= point.value + 1e-12].sum())


def test_a_shorter_horizon_is_weighed_up_to_it_alone():
    _, target, _, columns = chain_log(seed=2, episodes=60, horizon=12)
    early = {name: values[columns["step"] < 3] for name, values in columns.items()}
    w, y = episodes_of(early, target)
    found = mixope.returns(columns, mixope.TabularPolicy(target), horizon=3).main
    assert found.mean.value == pytest.approx(w @ y)
    assert found.effective_episodes == pytest.approx(1 / np.sum(w**2))


def test_on_policy_the_distribution_is_the_empirical_one():
    model, _, loggers, _ = chain_log(seed=2)
    columns = simulate(model, loggers[:1], 80, 10, seed=3)
    found = mixope.returns(columns, mixope.TabularPolicy(loggers[0]), alpha=0.25, horizon=10).main
    y = np.sort(columns["reward"].reshape(80, 10).mean(axis=1))
    assert found.tail.value == pytest.approx(y[:20].mean())
    assert found.mean.value == pytest.approx(y.mean())
    assert found.effective_episodes == pytest.approx(80)


def test_totals_of_episodes_that_end():
    _, target, _, columns = ending_log(seed=4, episodes=200)
    if not columns["terminated"][np.append(np.diff(columns["episode_id"]) != 0, True)].all():
        whole = [e for e in np.unique(columns["episode_id"]) if columns["terminated"][columns["episode_id"] == e].any()]
        columns = {name: values[np.isin(columns["episode_id"], whole)] for name, values in columns.items()}
    found = mixope.returns(columns, mixope.TabularPolicy(target))
    assert found.estimand.kind == "episode"
    assert found.main.tail.value <= found.main.mean.value


@pytest.mark.long
def test_intervals_of_mean_tail_and_quantile_hold_the_truth():
    """Against a million steps of the target itself."""
    model, target, loggers, _ = chain_log(seed=0)
    mixed = 0.5 * target + 0.5 * loggers[0]
    own = np.sort(simulate(model, [mixed], 40_000, 5, seed=77)["reward"].reshape(-1, 5).sum(axis=1) / 5)
    truth = {"mean": own.mean(), "tail": own[: len(own) // 5].mean()}
    inside = {"mean": [], "tail": []}
    for seed in range(120):
        columns = simulate(model, loggers[:1], 300, 5, seed=seed)
        found = mixope.returns(columns, mixope.TabularPolicy(mixed), alpha=0.2, horizon=5).main
        for name, amount in (("mean", found.mean), ("tail", found.tail)):
            inside[name].append(amount.interval.low <= truth[name] <= amount.interval.high)
    assert 0.91 <= np.mean(inside["mean"]) <= 0.99
    assert 0.91 <= np.mean(inside["tail"]) <= 0.99


def test_weights_that_vanish_are_refused_or_not_supported():
    _, target, _, columns = chain_log(seed=2, episodes=40, horizon=60)
    far = np.zeros_like(target)
    far[:, 0] = 1.0
    with pytest.raises(DataError, match="all weights vanish"):
        mixope.returns(columns, mixope.TabularPolicy(far), horizon=60)
    sharp = 0.95 * far + 0.05 / far.shape[1]
    found = mixope.returns(columns, mixope.TabularPolicy(sharp), horizon=60).main
    assert found.verdict is mixope.Verdict.UNSUPPORTED
    assert any(c.name == "episodes in the tail" and c.status == "fail" for c in found.checks)


def test_what_has_no_distribution_is_refused_in_words():
    _, target, _, columns = chain_log(seed=2)
    with pytest.raises(UsageError, match="long-run average has no distribution"):
        mixope.returns(columns, mixope.TabularPolicy(target), estimand="average")
    with pytest.raises(UsageError, match="alpha is the share"):
        mixope.returns(columns, mixope.TabularPolicy(target), alpha=5, horizon=5)


def test_several_targets_are_shown_drawn_and_written():
    _, target, loggers, columns = chain_log(seed=2, episodes=60, horizon=6)
    targets = {"new": mixope.TabularPolicy(target), "old": mixope.TabularPolicy(loggers[0])}
    found = mixope.returns(columns, targets, horizon=6)
    assert found["old"].target == "old"
    assert "mean of the worst 0.1" in str(found)
    axes = found.plot()
    assert {text.get_text() for text in axes.texts} == {"new", "old", "mean of the worst 0.1 of episodes"}
    assert "new" in found._repr_html_()
    assert json.loads(found.to_json())["targets"][0]["tail"]["value"] == pytest.approx(found.main.tail.value)
    assert mixope.Returns.from_json(found.to_json()).to_dict() == found.to_dict()


def test_a_quantile_is_the_smallest_return_that_reaches_the_share():
    w, y = np.array([0.2, 0.3, 0.5, 0.0]), np.array([3.0, 1.0, 2.0, -9.0])
    assert [weighted_quantile(w, y, share) for share in (0.0, 0.3, 0.31, 0.8, 0.81, 1.0)] == [1, 1, 2, 2, 3, 3]
