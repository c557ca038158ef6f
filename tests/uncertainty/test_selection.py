"""Which targets to take: places, the probability of being the best, and what is lost if the first few are taken."""

import json
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy.special import stdtr
from scipy.stats import norm, t

import mixope
from mixope.checks import Verdict
from mixope.differences import JointScores, Selection, contest, contests_of, joint, ranks, regrets, select
from mixope.differences import selection as selecting
from mixope.report.cards import card

from .logs import chain_log

EPISODES = 2001


def scores_of(covariance, m=EPISODES):
    """Scores by episode that have exactly this covariance."""
    k = len(covariance)
    basis = np.linalg.qr(np.random.default_rng(7).normal(size=(m, k)))[0]
    spread, directions = np.linalg.eigh(np.asarray(covariance, dtype=float))
    root = (directions * np.sqrt(np.maximum(spread, 0.0))) @ directions.T
    return basis @ root * np.sqrt((m - 1) / m)


def joint_of(values, covariance, names=None, m=EPISODES):
    names = names or tuple(f"t{k}" for k in range(len(values)))
    return JointScores(tuple(names), np.array(values, dtype=float), scores_of(covariance, m))


def chosen(scores, level=0.95):
    found = contest(scores, level)
    return {rank.target: rank for rank in ranks(found)}, regrets(found, level)


def test_of_two_the_probability_of_the_best_is_that_of_the_difference():
    places, _ = chosen(joint_of([1.0, 1.3], np.diag([0.04, 0.09])))
    assert places["t1"].probability_best == pytest.approx(norm.cdf(0.3 / np.sqrt(0.13)), abs=2e-4)
    assert places["t1"].probability_best == pytest.approx(stdtr(EPISODES - 1, 0.3 / np.sqrt(0.13)), rel=1e-12)
    assert places["t0"].probability_best + places["t1"].probability_best == pytest.approx(1.0)
    assert places["t0"].expected_rank == pytest.approx(1 + places["t1"].probability_best)


def test_the_regret_of_two_is_the_mean_of_what_the_other_may_be_better():
    """E[d₊] for d normal about −0.3: s φ(z) − 0.3 (1 − Φ(z)), z = 0.3/s."""
    places, (one, both) = chosen(joint_of([1.0, 1.3], np.diag([0.04, 0.09])))
    s = np.sqrt(0.13)
    closed = s * norm.pdf(0.3 / s) - 0.3 * norm.sf(0.3 / s)
    assert one.targets == ("t1",)
    assert one.expected == pytest.approx(closed, rel=0.03)
    assert one.bound == pytest.approx(t.ppf(0.95, EPISODES - 1) * s - 0.3)
    assert (both.expected, both.bound) == (0.0, 0.0)
    assert places["t0"].span == places["t1"].span == "1–2"


def test_what_targets_share_does_not_blur_their_places():
    """The variance of each is 100 times that of the difference."""
    apart, _ = chosen(joint_of([1.0, 1.3], [[1.0, 0.0], [0.0, 1.0]]))
    alike, _ = chosen(joint_of([1.0, 1.3], [[1.0, 0.995], [0.995, 1.0]]))
    assert apart["t1"].probability_best < 0.6
    assert alike["t1"].probability_best == pytest.approx(norm.cdf(3.0), abs=1e-3)
    assert (alike["t1"].span, alike["t0"].span) == ("1", "2")


def test_three_equal_targets_have_a_third_each_and_any_place():
    places, losses = chosen(joint_of([2.0, 2.0, 2.0], 0.01 * np.eye(3)))
    assert [rank.probability_best for rank in places.values()] == pytest.approx([1 / 3] * 3, abs=0.005)
    assert {rank.span for rank in places.values()} == {"1–3"}
    assert {rank.place for rank in places.values()} == {1}
    gain = 0.1 * 3 / (2 * np.sqrt(np.pi))  # the mean of the largest of three
    assert losses[0].expected == pytest.approx(gain, rel=0.02)


def test_neither_order_nor_names_change_anything():
    values, root = np.array([0.1, 0.3, 0.2, 0.28]), np.random.default_rng(3).normal(size=(4, 4)) / 20
    scores = scores_of(root @ root.T, 60)
    first = None
    for order in permutations(range(4)):
        found = contest(JointScores(tuple("abcd"[k] for k in order), values[list(order)], scores[:, order]), 0.95)
        record = json.dumps([[rank.to_dict() for rank in ranks(found)], [r.to_dict() for r in regrets(found, 0.95)]])
        first = first or record
        assert record == first
    renamed, _ = chosen(JointScores(tuple("zyxw"), values, scores))
    for rank in chosen(JointScores(tuple("abcd"), values, scores))[0].values():
        assert replace(renamed["zyxw"["abcd".index(rank.target)]], target=rank.target) == rank


def test_the_same_target_twice_shares_its_places_and_changes_nobody_else():
    values, scores = np.array([0.5, 0.45, 0.2]), scores_of(np.diag([0.01, 0.02, 0.0001]), 200)
    once, _ = chosen(JointScores(("a", "b", "c"), values, scores))
    twice, losses = chosen(JointScores(("a", "b", "c", "a again"), values[[0, 1, 2, 0]], scores[:, [0, 1, 2, 0]]))
    assert twice["a"].probability_best == twice["a again"].probability_best
    assert 2 * twice["a"].probability_best == pytest.approx(once["a"].probability_best, abs=0.02)
    shared = Selection("emp", 0.95, tuple(sorted(twice.values(), key=lambda rank: -rank.value)))
    assert shared.summary.startswith("a and a again share the first place, each of them the best with probability 0.")
    assert (twice["a"].place, twice["a again"].place, twice["b"].place) == (1, 1, 3)
    assert losses[0].expected == losses[1].expected  # the second of the same adds nothing
    assert losses[0].bound == losses[1].bound


def test_targets_that_never_vary_are_ranked_by_their_values():
    places, losses = chosen(JointScores(("a", "b", "c"), np.array([1.0, 2.0, 1.0]), np.zeros((10, 3))))
    assert [(places[k].place, places[k].span) for k in "abc"] == [(2, "2–3"), (1, "1"), (2, "2–3")]
    assert [places[k].probability_best for k in "abc"] == [0.0, 1.0, 0.0]
    assert (losses[0].expected, losses[0].bound) == (0.0, 0.0)


def test_one_target_is_the_best_and_loses_nothing():
    places, losses = chosen(joint_of([0.4], [[0.01]]))
    assert (places["t0"].probability_best, places["t0"].span, places["t0"].places) == (1.0, "1", (1.0,))
    assert [(found.k, found.expected, found.bound) for found in losses] == [(1, 0.0, 0.0)]


def test_the_bound_is_that_of_the_pairs_by_hand():
    """Each of the others less the better of those taken, at the quantile of that one as the best."""
    found = contest(joint_of([0.5, 0.4, 0.45, 0.1], np.diag([0.01, 0.04, 0.02, 0.01])), 0.9)
    v, s, q = found.joint.values, found.errors, found.best
    by_hand = max(min(v[b] - v[i] + q[b] * s[b, i] for i in (0, 1)) for b in (2, 3))
    assert regrets(found, 0.9)[1].bound == pytest.approx(by_hand)
    assert by_hand > 0


def test_taking_more_never_costs_more():
    generator = np.random.default_rng(5)
    for _ in range(10):
        root = generator.normal(size=(7, 7))
        _, losses = chosen(joint_of(generator.normal(size=7), root @ root.T, m=30))
        assert len(losses) == selecting.MOST_TAKEN
        for fewer, more in pairwise(losses):
            assert more.expected <= fewer.expected
            assert more.bound <= fewer.bound


def test_of_many_targets_bonferroni_s_bound_is_wider_and_close():
    values, covariance = np.linspace(0.0, 1.0, 12), 0.01 * np.eye(12)
    drawn = contest(joint_of(values, covariance), 0.95)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selecting, "MOST_JOINT", 11)
        bounded = contest(joint_of(values, covariance), 0.95)
    assert drawn.pairs < bounded.pairs < 1.1 * drawn.pairs
    assert (drawn.best < bounded.best).all()
    assert (bounded.best < 1.1 * drawn.best).all()


def compared(n=4, estimators=("emp",), **options):
    _, target, loggers, columns = chain_log(0, episodes=40, horizon=15)
    laws = {f"t{k}": (1 - s) * target + s * loggers[0] for k, s in enumerate(np.linspace(0.0, 0.4, n))}
    return mixope.compare(columns, {k: mixope.TabularPolicy(law) for k, law in laws.items()}, estimators, **options)


def test_targets_in_another_order_have_the_same_places_and_regret():
    _, target, loggers, columns = chain_log(0, episodes=40, horizon=15)
    laws = {f"t{k}": (1 - s) * target + s * loggers[0] for k, s in enumerate((0.0, 0.1, 0.1, 0.3, 0.2))}
    plans = {name: mixope.TabularPolicy(law) for name, law in laws.items()}
    there = mixope.compare(columns, plans, ["emp", "dr", "wis-step"]).to_dict()
    back = mixope.compare(columns, dict(reversed(plans.items())), ["emp", "dr", "wis-step"]).to_dict()
    assert there["selections"] == back["selections"]
    assert len(there["selections"]) == 3


@pytest.mark.parametrize("level", [0.01, 0.3, 0.5, 0.999])
def test_any_level_has_places_that_hold_the_values_own(level):
    found = compared(5, level=level).selections[0]
    assert all(rank.low <= rank.place <= rank.high for rank in found.ranks)
    assert found.contenders[0] == found.ranks[0].target
    assert all(taken.bound >= 0.0 for taken in found.regret)


def test_scores_that_are_no_numbers_count_as_none():
    first, *others = compared()
    broken = replace(first, scores=np.full_like(first.scores, np.nan))
    found = contests_of([broken, *others], 0.95)[0][0]
    assert {rank.target: rank.note for rank in found.ranks}[first.target] == "by its value alone"


def refuse(estimates, *names):
    return [replace(e, verdict=Verdict.UNSUPPORTED) if e.target in names else e for e in estimates]


def test_a_refused_target_stands_last_without_a_place_and_cannot_win():
    result = compared()
    best = result.selections[0].ranks[0].target
    ((found, differences),) = contests_of(refuse(result, best), 0.95)
    last = found.ranks[-1]
    assert (last.target, last.place, last.probability_best, last.low, last.may_be_best) == (best, *[None] * 4)
    assert last.note == "not supported by these logs"
    assert [rank.place for rank in found.ranked] == [1, 2, 3]
    assert all(best not in taken.targets for taken in found.regret)
    assert f"not ranked: {best} (not supported by these logs)" in found.summary
    assert not found.summary.startswith(best)
    assert f"{best}: not supported by these logs, and so is every difference with it" in differences.alerts
    without = contests_of([e for e in result if e.target != best], 0.95)[0][0]
    assert found.ranks[:-1] == without.ranks
    assert found.regret == without.regret


def test_of_many_targets_the_best_that_all_are_compared_with_is_not_a_refused_one():
    result = compared(14)
    first, second = result.selections[0].ranks[:2]
    ((_, differences),) = contests_of(refuse(result, first.target), 0.95)
    assert {pair.first for pair in differences.pairs} == {second.target}


def test_where_all_are_refused_nobody_is_ranked():
    result = compared()
    ((found, _),) = contests_of(refuse(result, *(e.target for e in result)), 0.95)
    assert found.ranked == found.regret == found.advice == ()
    assert found.summary.startswith("no target can be ranked; not ranked: t0 (not supported by these logs)")


def test_where_one_is_left_it_is_said_to_be_the_only_one():
    result = compared(2)
    ((found, _),) = contests_of(refuse(result, "t1"), 0.95)
    assert found.summary == "t0 is the only target that is ranked; not ranked: t1 (not supported by these logs)"
    assert found.advice == ()


@pytest.mark.parametrize("refused", [1, 13])
def test_what_is_left_alone_by_refusals_is_not_the_best_of_anything(refused):
    """Whether the others are better is what the logs cannot tell."""
    result = compared(refused + 1)
    ((found, differences),) = contests_of(refuse(result, *(f"t{k}" for k in range(1, refused + 1))), 0.95)
    (rank,) = found.ranked
    assert (rank.target, rank.place, rank.note) == ("t0", 1, "the only one that is ranked")
    assert (rank.probability_best, rank.expected_rank, rank.span, rank.may_be_best, rank.places) == (
        None,
        None,
        "–",
        None,
        (),
    )
    assert rank.interval is not None
    assert (found.regret, found.contenders) == ((), ())
    assert {pair.conclusion for pair in differences.pairs} == {None}
    assert card(found).word == "one target is ranked"


def without_scores(estimate):
    return replace(estimate, scores=None, step_scores=None, interval=None, no_interval_because="it is a plug-in")


def test_estimates_without_scores_are_ranked_by_value_alone_and_say_so():
    ((found, differences),) = contests_of([without_scores(e) for e in compared()], 0.95)
    assert differences is None
    assert [rank.place for rank in found.ranks] == [1, 2, 3, 4]
    assert [rank.value for rank in found.ranks] == sorted((rank.value for rank in found.ranks), reverse=True)
    assert {(rank.probability_best, rank.low, rank.note) for rank in found.ranks} == {
        (None, None, "by its value alone")
    }
    assert found.regret == ()
    assert found.summary.startswith("by value alone, without knowing how certain that is: ")
    assert found.alerts == (
        "t0, t1, t2, t3: by value alone, and no part of probabilities, places and regret: it is a plug-in",
    )


def test_one_without_scores_has_a_place_by_value_among_those_with_scores():
    estimates = list(compared())
    order = sorted(estimates, key=lambda e: -e.value)
    mixed = [without_scores(e) if e is order[1] else e for e in estimates]
    found = contests_of(mixed, 0.95)[0][0]
    assert [(rank.target, rank.place) for rank in found.ranks] == [(e.target, k + 1) for k, e in enumerate(order)]
    assert found.ranks[1].low is None
    assert max(rank.high for rank in found.ranks if rank.high) == 3
    assert sum(rank.probability_best or 0.0 for rank in found.ranks) == pytest.approx(1.0, abs=0.005)


def test_intervals_of_all_values_together_are_wider_in_one_proportion():
    found = compared().selections[0]
    ratios = [(rank.joint.high - rank.value) / (rank.interval.high - rank.value) for rank in found.ranks]
    assert ratios == pytest.approx([ratios[0]] * 4)
    assert 1.0 < ratios[0] < 1.5


def test_a_value_that_does_not_exist_has_no_place():
    estimates = list(compared())
    found = select([replace(estimates[0], value=float("nan"), scores=None), *estimates[1:]], None, 0.95)
    assert (found.ranks[-1].target, found.ranks[-1].place, found.ranks[-1].note) == ("t0", None, "it has no value")


def test_json_holds_every_field_and_comes_back():
    result = compared()
    record = json.loads(result.to_json())
    assert result.to_json() == compared().to_json()
    for rank, found in zip(record["ranks"], result.selections[0].ranks, strict=True):
        assert (rank["target"], rank["place"], rank["low"], rank["high"]) == (
            *(found.target, found.place),
            *(found.low, found.high),
        )
        assert rank["probability_best"] == pytest.approx(found.probability_best, rel=1e-11)
        assert rank["joint"]["low"] < rank["interval"]["low"] < rank["value"]
    assert [taken["targets"] for taken in record["regret"]] == [list(r.targets) for r in result.selections[0].regret]
    assert record["selections"][0]["contenders"] == list(result.selections[0].contenders)


def test_sentences_say_what_to_take_and_what_it_costs():
    _, losses = chosen(joint_of([1.0, 0.9, -5.0], 0.01 * np.eye(3), ("new", "old", "bad")))
    assert losses[0].sentence.startswith("take new: it is within ")
    assert losses[0].sentence.endswith(" is lost on average")
    assert losses[1].sentence == "take new and old: the best of the 3 ranked is one of them at level 0.95"
    assert losses[2].sentence == "take all 3: nothing is lost"


TRUTHS = {
    "equal": np.zeros,
    "one is better by one error": lambda k: np.r_[1.0, np.zeros(k - 1)],
    "one is better by two errors": lambda k: np.r_[2.0, np.zeros(k - 1)],
    "a ramp": lambda k: np.linspace(0.0, 3.0, k),
    "two groups": lambda k: np.where(np.arange(k) % 3 == 0, 1.5, 0.0),
}


@pytest.mark.long
@pytest.mark.parametrize(("k", "shared"), [(2, 0.0), (8, 0.0), (8, 0.8), (20, 0.8)])
@pytest.mark.parametrize("truth", TRUTHS)
def test_bounds_places_and_the_set_of_the_best_hold_as_often_as_they_say(truth, k, shared, monkeypatch):
    """Gaussian estimates of known covariance, one fixed truth; truths in units of the error of a difference."""
    monkeypatch.setattr(joint, "DRAWS", 4000)
    covariance, logs, generator = shared + (1 - shared) * np.eye(k), 200, np.random.default_rng(k)
    truths, held = TRUTHS[truth](k) * np.sqrt(2 * (1 - shared)), np.zeros(3)
    better, worse = ((sign * (truths[None, :] - truths[:, None]) > 0).sum(axis=1) for sign in (1, -1))
    scores, names, root = scores_of(covariance), tuple(map(str, range(k))), np.linalg.cholesky(covariance)
    for seed in range(logs):
        values = truths + root @ generator.normal(size=k)
        found = contest(JointScores(names, values, scores), 0.95, seed)
        placed = [(int(rank.target), rank) for rank in ranks(found)]
        held += (
            all(truths.max() - max(truths[int(n)] for n in r.targets) <= r.bound + 1e-9 for r in regrets(found, 0.95)),
            all(rank.low <= 1 + better[i] and rank.high >= k - worse[i] for i, rank in placed),
            any(rank.may_be_best and better[i] == 0 for i, rank in placed),
        )
    assert (held / logs >= 0.95 - 2.5 * np.sqrt(0.95 * 0.05 / logs)).all(), held / logs


@pytest.mark.long
def test_the_expected_regret_is_right_on_average_over_truths_that_are_far_from_known(monkeypatch):
    """The truths spread five times as far as the errors, so that a flat prior is nearly theirs."""
    monkeypatch.setattr(joint, "DRAWS", 2000)
    generator, k, logs, off = np.random.default_rng(1), 6, 2000, []
    scores, names = scores_of(np.eye(k)), tuple(map(str, range(k)))
    for seed in range(logs):
        truths = 5.0 * generator.normal(size=k)
        found = contest(JointScores(names, truths + generator.normal(size=k), scores), 0.95, seed)
        taken = regrets(found, 0.95)[0]
        off.append((truths.max() - truths[int(taken.targets[0])], taken.expected))
    lost, said = np.mean(off, axis=0)
    error = np.std(np.diff(off, axis=1)) / np.sqrt(logs)
    assert error < 0.1 * lost
    assert said == pytest.approx(lost, abs=2.5 * error)
