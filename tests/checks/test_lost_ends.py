"""Ends that are missing, mistaken or selected come out; episodes that end as their states say raise no alarm."""

import numpy as np
import pytest
from scipy import stats

import mixope
from mixope import worlds
from mixope.checks.ends import lengths_fit, trend_in
from mixope.requests.episodes import EpisodeTotals
from mixope.session.session import count

pytestmark = pytest.mark.long

MODEL = worlds.make("sessions")
LOGGERS = worlds.stages(MODEL, 2, seed=0)
TARGET = mixope.TabularPolicy(worlds.target(MODEL, seed=0))
MANY = 300


def logs(seed=0, episodes=MANY):
    return worlds.simulate(MODEL, LOGGERS, episodes, None, seed=seed)


def taken(columns, rows):
    return {name: column[rows] for name, column in columns.items()}


def last(columns):
    return np.append(np.diff(columns["episode_id"]) != 0, True)


def lengths(columns):
    return np.bincount(columns["episode_id"])[columns["episode_id"]]


def judged(columns, estimand="episode", read=None, **options):
    found = mixope.evaluate(mixope.read(columns, **(read or {})), TARGET, "emp", estimand=estimand, **options)
    return {d.name: d for d in found.diagnostics}


def torn(columns, every=4):
    """The last row of one episode in four is missing, and with it the end."""
    return taken(columns, ~(last(columns) & (columns["episode_id"] % every == 0)))


@pytest.mark.parametrize("engine", ["memory", "embedded"])
@pytest.mark.parametrize("estimand", ["episode", "average"])
def test_episodes_that_stop_without_a_mark_are_mentioned(estimand, engine):
    columns = torn(logs())
    columns = taken(columns, lengths(columns) > 0)
    found = judged(columns, estimand, engine=engine)["unmarked stops"]
    kept = np.unique(columns["episode_id"])
    assert found.status == "warn"
    assert found.value == pytest.approx(np.mean(kept % 4 == 0), abs=0.01)
    assert found.sentence.endswith("and are taken as cut; mark their last rows")


def test_marked_ends_and_marked_cuts_are_no_unmarked_stops():
    columns = logs()
    cut = taken(columns, columns["step"] < 5)
    marks = {"truncated": last(cut) & ~cut["terminated"]}
    for healthy in (columns, {**cut, **marks}):
        assert "unmarked stops" not in judged(healthy)


def test_a_limit_that_all_unmarked_episodes_share_needs_no_mark():
    columns = logs()
    cut = taken(columns, columns["step"] < 5)
    cut.pop("truncated")
    assert "unmarked stops" not in judged(cut)


def without_marks(columns):
    return {name: column for name, column in columns.items() if name not in ("terminated", "truncated")}


def test_where_no_column_marks_ends_the_reader_is_asked_and_his_word_settles_it():
    columns, question = without_marks(torn(logs(), every=1)), {"estimand": "discounted", "gamma": 0.9}
    found = judged(columns, **question)["unmarked stops"]
    assert "ends='terminated' or ends='truncated' where the logs are read" in str(found.sentence)
    assert "unmarked stops" not in judged(columns, read={"ends": "truncated"}, **question)


def test_a_process_without_ends_is_not_asked_for_them():
    assert "unmarked stops" not in judged(without_marks(torn(logs(), every=1)), "average")


@pytest.mark.parametrize("name", ["sessions", "survival", "queue", "frozenlake"])
def test_episodes_that_end_as_their_states_say_raise_no_alarm(name):
    """Also where long ones were cut, at one length or by chance, and the rows say so."""
    model = worlds.make(name)
    laws = worlds.stages(model, 3, seed=0)
    found = []
    for seed in range(12):
        columns = worlds.simulate(model, laws, 150, None, seed=seed)
        limit = np.random.default_rng(seed).geometric(0.1, size=150)[columns["episode_id"]]
        for most in (np.inf, np.quantile(lengths(columns), 0.5), limit):
            kept = taken(columns, columns["step"] < most)
            counted = count({**kept, "truncated": last(kept) & ~kept["terminated"]})
            found.append(lengths_fit(counted.transitions, counted_totals(counted)).value)
    assert np.sort(found)[-2] < 2.25
    assert np.mean(found) < 0.5


def counted_totals(counted):
    return counted.rounds().run(counted.structure()).totals


@pytest.mark.parametrize("name", ["sessions", "survival", "queue", "frozenlake"])
def test_long_episodes_that_are_missing_come_out_by_their_number(name):
    model = worlds.make(name)
    columns = worlds.simulate(model, worlds.stages(model, 3, seed=0), MANY, None, seed=0)
    counted = count(taken(columns, lengths(columns) <= np.quantile(np.bincount(columns["episode_id"]), 0.75)))
    found = lengths_fit(counted.transitions, counted_totals(counted))
    assert found.status != "pass"
    assert "long episodes may be missing" in found.sentence


def test_the_expected_number_of_longer_episodes_is_that_of_a_chain_by_hand():
    """One state that ends with a share q: n (1 − q)^L go on, and none of those cut before L."""
    length = np.array([1, 1, 2, 3, 3, 4, 2, 3] * 5)
    ended = np.array([1, 1, 1, 1, 1, 1, 0, 1] * 5)
    columns = {
        "episode_id": np.repeat(np.arange(40), length),
        "step": np.concatenate([np.arange(n) for n in length]),
        "observation": np.zeros(length.sum(), dtype=int),
        "action": np.zeros(length.sum(), dtype=int),
        "reward": np.ones(length.sum()),
        "next_observation": np.zeros(length.sum(), dtype=int),
    }
    columns["terminated"] = last(columns) & (ended[columns["episode_id"]] == 1)
    columns["truncated"] = last(columns) & ~columns["terminated"]
    counted = count(columns)
    q, uncut = ended.sum() / length.sum(), 1 - 5 / 25
    expected = 40 * (1 - q) ** 4 * uncut
    found = lengths_fit(counted.transitions, counted_totals(counted))
    assert found.value == pytest.approx(stats.norm.isf(stats.poisson.cdf(0, expected)))


def test_where_few_episodes_end_or_starts_are_unknown_lengths_say_nothing():
    counted = count(logs(episodes=12))
    assert lengths_fit(counted.transitions, counted_totals(counted)) is None
    totals = EpisodeTotals(np.zeros(50, dtype=int), np.full(50, 3.0), np.zeros(50), np.zeros(50), *(np.ones(50),) * 2)
    assert lengths_fit(counted.transitions, totals) is None


def test_a_limit_marked_as_an_end_comes_out_by_both_checks():
    """An episode that only a clock stops ends late, whatever its state."""
    columns = logs()
    cut = taken(columns, columns["step"] < 4)
    found = judged({**cut, "terminated": last(cut)})
    assert found["ends over steps"].status != "pass"
    assert found["episode lengths"].status != "pass"
    healthy = judged(columns)
    assert (healthy["ends over steps"].status, healthy["episode lengths"].status) == ("pass", "pass")


def test_the_trend_within_strata_is_that_of_all_orders():
    generator = np.random.default_rng(0)
    stratum, at = np.repeat([0, 1, 2, 3], [1, 4, 9, 30]), generator.integers(0, 6, 44).astype(float)
    happened = (generator.random(44) < 0.4).astype(float)
    sums = []
    for _ in range(20_000):
        order = np.concatenate([generator.permutation(np.flatnonzero(stratum == k)) for k in range(4)])
        sums.append(at @ happened[order])
    expected = (at @ happened - np.mean(sums)) / np.std(sums)
    assert trend_in(stratum, at, happened) == pytest.approx(expected, abs=0.05)
    assert trend_in(stratum, at, np.ones(44)) is None


def test_healthy_ends_seldom_seem_to_follow_the_step():
    z = [judged(logs(seed, 100))["ends over steps"].value for seed in range(25)]
    assert max(z) < 3.0


def test_logs_in_which_nobody_earned_anything_are_no_evidence():
    columns = logs()
    found = judged({**columns, "reward": np.zeros(len(columns["reward"]))})["rewards seen"]
    assert found.status == "warn"
    assert "rewards seen" not in judged(columns)
    assert "rewards seen" not in judged({**columns, "reward": np.ones(len(columns["reward"]))})
