"""Risk against return: names keep clear of each other, and what lies far out does not squeeze the rest."""

import numpy as np
import pytest

from mixope.base.estimand import Estimand
from mixope.checks import Verdict
from mixope.distributions import Amount, Returns, TargetReturns
from mixope.report.returns_sheet import headline
from mixope.report.risk_graph import MOST_NAMED, PixelBox, places, risk_and_return
from mixope.report.svg import Canvas, own_style
from mixope.uncertainty import Interval

PAGES = (PixelBox(0, 0, 690, 270), PixelBox(0, 0, 290, 250))


def amount(name, value, reach):
    return Amount(name, value, reach / 2, Interval(value - reach, value + reach, 0.95, "clustered score, t"))


def target(name, mean, tail, reach=0.1, verdict=Verdict.TRUSTWORTHY):
    return TargetReturns(name, amount("mean", mean, reach), amount("tail", tail, reach), (), (), 100.0, verdict, ())


def drawn(*targets, narrow=False):
    """The axes of a picture."""
    with own_style():
        axes = Canvas(344 if narrow else 760, 340).subplots()
        risk_and_return(axes, Returns(Estimand("episode"), 0.1, 0.95, 100, targets), narrow=narrow)
    return axes


@pytest.mark.parametrize("page", PAGES, ids=["wide", "narrow"])
@pytest.mark.parametrize("seed", range(20))
def test_eight_names_never_meet_wherever_the_points_lie(page, seed):
    generator = np.random.default_rng(seed)
    spread = generator.choice([3.0, 20.0, 80.0])  # from one heap to all over the page
    middle = np.array([page.right, page.top]) / 2
    points = [tuple(np.clip(middle + spread * generator.normal(size=2), 8, 2 * middle - 8)) for _ in range(8)]
    widths = generator.uniform(20, 0.35 * page.right, 8)
    lines = [PixelBox(x - 40, y, x + 40, y) for x, y in points]
    found = places(points, widths, page, lines)
    assert not [(a, b) for k, a in enumerate(found) for b in found[:k] if a.meets(b)]
    assert all(page.holds(box) for box in found)


def test_a_name_alone_stands_beside_its_point_and_off_its_whiskers():
    lines = [PixelBox(60, 100, 140, 100), PixelBox(100, 80, 100, 120)]
    (box,) = places([(100.0, 100.0)], [40.0], PAGES[0], lines)
    assert not any(box.meets(line) for line in lines)
    assert np.hypot(*np.subtract(box.nearest((100.0, 100.0)), (100.0, 100.0))) < 15


@pytest.mark.parametrize("narrow", [False, True])
def test_what_is_not_supported_is_an_arrow_at_the_edge(narrow):
    far = target("far", 1e6, -1e6, 1e5, Verdict.UNSUPPORTED)
    axes = drawn(target("safe", 1.0, 0.5), target("risky", 2.0, -1.0), far, narrow=narrow)
    assert axes.get_xlim()[1] < 5
    assert {line.get_marker() for line in axes.lines} >= {"o", ">"}
    assert {"safe", "risky", "far"} <= {text.get_text() for text in axes.texts}


def test_what_is_not_supported_never_leads():
    far = target("far", 9.0, 9.0, 0.1, Verdict.UNSUPPORTED)
    safe, risky = target("safe", 1.0, 0.5), target("risky", 2.0, -1.0)
    said = headline(Returns(Estimand("episode"), 0.1, 0.95, 100, (far, safe, risky)))
    assert said.startswith("risky has the highest mean of the 2 that are supported; safe the highest in the worst 0.1")
    assert "support no answer" in headline(Returns(Estimand("episode"), 0.1, 0.95, 100, (far, far)))


def test_of_many_targets_the_first_are_named():
    axes = drawn(*(target(f"t{k}", k / 10, -k / 10) for k in range(30)))
    named = [text.get_text() for text in axes.texts if text.get_text().startswith("t")]
    assert len(named) == MOST_NAMED
    assert "t29" in named  # the highest mean


def test_intervals_that_do_not_exist_are_not_drawn():
    bare = TargetReturns(
        "bare",
        Amount("mean", 1.0, None, None),
        Amount("tail", 0.0, None, Interval(float("nan"), float("nan"), 0.95, "t")),
        (),
        (),
        1.0,
        Verdict.CAUTION,
        (),
    )
    axes = drawn(bare)
    assert [line.get_marker() for line in axes.lines if len(np.atleast_1d(line.get_xdata())) == 1] == ["^"]
