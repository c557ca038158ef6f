"""Risk against return in a comparison: the same as ``returns``, and never a reason for the comparison to fail."""

import json

import numpy as np
import pytest

import mixope
from mixope.base.errors import UsageError
from mixope.distributions import Returns
from uncertainty.logs import chain_log

STEPS = 3


def ending(episodes=300, seed=0):
    """Three decisions until the end, by a coin: a safe 1, or a risky -1 or 3.2."""
    generator = np.random.default_rng(seed)
    action = generator.integers(0, 2, (episodes, STEPS))
    reward = np.where(action == 0, 1.0, generator.choice([-1.0, 3.2], (episodes, STEPS)))
    return {
        "episode_id": np.repeat(np.arange(episodes), STEPS),
        "step": np.tile(np.arange(STEPS), episodes),
        "observation": np.tile(np.arange(STEPS), episodes),
        "next_observation": np.tile(np.arange(1, STEPS + 1), episodes),
        "action": action.ravel(),
        "reward": reward.ravel(),
        "action_prob": np.full(episodes * STEPS, 0.5),
        "terminated": np.tile(np.arange(STEPS) == STEPS - 1, episodes),
    }


def targets(**shares):
    """Policies that take the safe action with these probabilities."""
    return {name: mixope.TabularPolicy(np.tile([p, 1 - p], (STEPS, 1))) for name, p in shares.items()}


def cut():
    """Episodes that the recorder stopped, a target, and another."""
    _, target, loggers, columns = chain_log(seed=2, episodes=60, horizon=6)
    return columns, {"new": mixope.TabularPolicy(target), "old": mixope.TabularPolicy(loggers[0])}


def test_it_is_what_returns_says():
    columns, named = ending(), targets(safe=0.9, risky=0.2)
    alone = mixope.returns(columns, named, alpha=0.2)
    for estimand in ("episode", "average"):  # a long run has no episodes: its totals are taken
        found = mixope.compare(columns, named, estimand=estimand, risk=0.2)
        assert found.risk.to_dict() == alone.to_dict()
        assert found.no_risk_because is None


def test_a_horizon_of_the_comparison_is_that_of_its_risk():
    columns, named = cut()
    found = mixope.compare(columns, named, horizon=4, risk=0.1)
    assert found.risk.to_dict() == mixope.returns(columns, named, horizon=4).to_dict()


def test_nobody_asked_and_nothing_is_said():
    found = mixope.compare(ending(60), targets(safe=0.9, risky=0.2))
    assert found.risk is None
    assert found.no_risk_because is None
    assert "worst" not in found.full()


def test_episodes_that_were_cut_have_no_totals_and_the_rest_stands():
    columns, named = cut()
    found = mixope.compare(columns, named, risk=0.1)
    assert found.to_dict()["estimates"] == mixope.compare(columns, named).to_dict()["estimates"]
    assert found.risk is None
    assert "60 of 60 episodes were cut before their end" in found.no_risk_because
    assert "horizon=…" in found.no_risk_because
    assert "'emp'" not in found.no_risk_because  # it has no distribution
    assert "no risk against return: " in found.full()


def test_a_target_that_no_episode_speaks_of_is_left_out_with_the_reason():
    _, target, loggers, columns = chain_log(seed=2, episodes=40, horizon=60)
    far = np.eye(target.shape[1])[np.zeros(len(target), dtype=int)]
    named = {"safe": mixope.TabularPolicy(loggers[0]), "risky": mixope.TabularPolicy(far)}
    found = mixope.compare(columns, named, horizon=60, risk=0.1)
    assert [each.target for each in found.risk.targets] == ["safe"]
    ((name, reason),) = found.risk.refused
    assert name == "risky"
    assert "no logged episode" in reason
    assert "risky is left out: no logged episode" in " ".join(found.full().split())
    assert Returns.from_json(found.risk.to_json()).refused == ((name, str(reason)),)
    alone = mixope.compare(columns, {"risky": named["risky"]}, horizon=60, risk=0.1)
    assert "all weights vanish" in alone.no_risk_because


@pytest.mark.parametrize("share", [0, 1, -0.1, 10, "0.1", True, float("nan")])
def test_a_share_that_is_none_is_refused_before_anything_is_read(share):
    with pytest.raises(UsageError, match="risk is the share of the worst episodes"):
        mixope.compare("nowhere.csv", {"new": "nowhere.csv"}, risk=share)


def test_it_is_printed_drawn_carded_and_written(tmp_path):
    found = mixope.compare(ending(), targets(safe=0.9, risky=0.2), risk=0.1)
    said = found.full()
    assert "risky has the highest mean; safe the highest in the worst 0.1 of episodes" in said
    assert "for one look" in said
    page = found.report(tmp_path / "page.html").read_text()
    assert 'href="#risk"' in page
    assert "One point per target" in page
    assert "mean of the worst 0.1" in found._repr_html_()
    again = mixope.Comparison.from_json(found.to_json())
    assert again.to_dict() == found.to_dict()
    assert {row["amount"] for row in found.tables()["risk"]} >= {"mean", "mean of the worst 0.1"}
    assert json.loads(found.to_json())["risk"]["targets"][1]["target"] == "risky"


def test_a_page_says_why_there_is_none(tmp_path):
    columns, named = cut()
    page = mixope.compare(columns, named, risk=0.1).report(tmp_path / "page.html").read_text()
    assert "No risk against return: " in page
    assert "were cut before their end" in page
