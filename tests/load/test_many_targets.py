"""Many targets: the work and the page grow with the number of targets, not with that of pairs."""

import json

import numpy as np
import pytest

import mixope
from mixope.differences import MOST_PAIRED, JointScores, pairwise, with_best
from mixope.report import document as documents
from mixope.report.figures import figures

from .logs import chain_log

MANY = MOST_PAIRED + 3


def compared(n, **options):
    target, loggers, columns = chain_log(0, episodes=30, horizon=10)
    shares = np.linspace(0.0, 0.5, n)
    laws = {f"t{k:02}": mixope.TabularPolicy((1 - s) * target + s * loggers[0]) for k, s in enumerate(shares)}
    return mixope.compare(columns, laws, "emp", **options)


@pytest.fixture(scope="module")
def many():
    return compared(MANY)


def test_few_targets_are_compared_in_all_pairs():
    (found,) = compared(4).differences
    assert (found.compared, len(found.pairs)) == ("all pairs", 6)


def test_many_targets_are_compared_with_the_best_and_with_what_ran(many):
    (found,) = many.differences
    best = found.selection.ranks[0].target
    assert found.compared == json.loads(many.to_json())["differences"][0]["compared"] == "with the best"
    assert {pair.first for pair in found.pairs} == {best}
    assert [pair.second for pair in found.pairs] == [place.target for place in found.selection.ranks[1:]]
    assert {pair.first for pair in found.loggers} == {place.target for place in found.selection.ranks}


def test_all_pairs_are_made_on_request():
    (found,) = compared(MANY, all_pairs=True).differences
    assert (found.compared, len(found.pairs)) == ("all pairs", MANY * (MANY - 1) // 2)


def test_a_pair_that_was_not_made_says_how_to_have_it(many):
    (found,) = many.differences
    worst = found.selection.ranks[-1].target
    with pytest.raises(KeyError, match="all_pairs=True"):
        found[worst, worst]


def test_differences_with_the_best_cover_although_the_best_was_picked_on_the_same_episodes():
    generator = np.random.default_rng(0)
    covered, repetitions = 0, 300
    for _ in range(repetitions):
        data = generator.normal(size=(40, 20))
        joint = JointScores(tuple(map(str, range(20))), data.mean(axis=0), (data - data.mean(axis=0)) / 40)
        covered += all(pair.joint.low <= 0 <= pair.joint.high for pair in with_best(joint, 0.9))
    assert covered / repetitions >= 0.87


def test_with_the_best_gives_the_differences_of_all_pairs_with_joint_intervals_no_narrower():
    data = np.random.default_rng(1).normal(size=(40, 5))
    joint = JointScores(tuple("abcde"), data.mean(axis=0), (data - data.mean(axis=0)) / 40)
    every = {frozenset((p.first, p.second)): p for p in pairwise(joint, 0.95)}
    for pair in with_best(joint, 0.95):
        same = every[frozenset((pair.first, pair.second))]
        assert abs(pair.value) == pytest.approx(abs(same.value))
        assert pair.standard_error == pytest.approx(same.standard_error)
        assert pair.joint.width >= 0.99 * same.joint.width


def test_ranks_and_sentences_do_not_grow_with_the_targets(many):
    (found,) = many.differences
    assert {len(place.places) for place in found.selection.ranks} == {MOST_PAIRED}
    assert found.summary.endswith(f"and {MANY - 12} more")


def test_only_the_best_have_figures_of_their_own(many, monkeypatch):
    drawn = []
    monkeypatch.setattr("mixope.report.drawings.draw", lambda *_, name, **__: drawn.append(name) or "")
    figures(documents.document(many))
    for what in ("forest", "weights", "growth", "visits"):
        assert [name for name in drawn if name.startswith(what)][::2] == [f"{what}-{k}-wide" for k in range(12)]


@pytest.fixture
def no_figures(monkeypatch):
    monkeypatch.setattr("mixope.report.html.figures", lambda *_: {})


@pytest.mark.usefixtures("no_figures")
def test_a_page_shows_the_best_in_detail_and_all_in_its_tables(many, tmp_path):
    page = many.report(tmp_path / "page.html").read_text()
    best = [place.target for place in many.selections[0].ranks]
    for target in best[: documents.MOST_DETAILED]:
        assert f'class="target-title">{target}<' in page
    for target in best[documents.MOST_DETAILED :]:
        assert f'class="target-title">{target}<' not in page
        assert f'<th scope="row">{target}</th>' in page
    assert f"{MANY} targets. The {documents.MOST_DETAILED} that rank highest are shown in detail" in page


@pytest.mark.usefixtures("no_figures")
def test_one_more_target_adds_a_few_lines_to_the_page(many, tmp_path):
    more = compared(2 * MANY)
    sizes = [found.report(tmp_path / "page.html").stat().st_size for found in (many, more)]
    assert (sizes[1] - sizes[0]) / MANY < 6000
