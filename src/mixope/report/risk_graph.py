"""Risk against return: one point per target, its mean to the right and the mean of its worst episodes upwards.

Whiskers are intervals. What lies far outside the targets that are supported is cut off, with an arrow. Names stand
beside their points: of many places around a point a name takes the one that is nearest and keeps clear of all other
names, points and whiskers, with a thin line where it has to stand apart: names on names are the worst, then names on
points, then lines that pass another name or point, then names on whiskers, then a long way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from matplotlib.axes import Axes

from mixope.distributions import Amount, Returns, TargetReturns
from mixope.report.graphs import above, frame, rounds
from mixope.report.plots import MARKER, Mark, limits, shortened, size, width
from mixope.report.svg import COLOURS, FONT_SIZE, INK, MUTED
from mixope.report.words import kind_of_verdict

HEIGHT = {True: 320, False: 340}
"""CSS pixels, on narrow and on wide pages."""
MOST_NAMED = 12
"""Targets whose names stand in the picture; the table has all."""
LINE, GAP = FONT_SIZE + 3, 6
"""CSS pixels: the height of a name, and the least between two."""
POINT = 5.0
"""Half the size of a point, in CSS pixels."""
ROOM = 0.08
"""Of the height, above the highest point: for its name."""
RINGS = (9.0, 18.0, 30.0, 44.0, 60.0, 78.0, 98.0, 120.0)
"""How far from its point a name may stand."""
SIDES = ((1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
Place = tuple[float, float]


@dataclass(frozen=True)
class PixelBox:
    """A rectangle, in CSS pixels from the lower left corner of the axes."""

    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def around(cls, at: Place, wide: float, high: float) -> PixelBox:
        """With this centre."""
        return cls(at[0] - wide / 2, at[1] - high / 2, at[0] + wide / 2, at[1] + high / 2)

    def meets(self, other: PixelBox) -> bool:
        """Whether the two have a point in common."""
        across = self.left < other.right and other.left < self.right
        return across and self.bottom < other.top and other.bottom < self.top

    def holds(self, other: PixelBox) -> bool:
        """Whether the other lies inside."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.bottom <= other.bottom and other.top <= self.top

    def nearest(self, to: Place) -> Place:
        """The point of it that is nearest to a place."""
        return min(max(to[0], self.left), self.right), min(max(to[1], self.bottom), self.top)


@dataclass(frozen=True)
class Spot:
    """A target in the picture: where it stands, in the units of the axes, and how far its whiskers reach."""

    name: str
    colour: str
    marker: str
    at: Place
    across: Place | None
    up: Place | None


def risk_and_return(axes: Axes, found: Returns, *, narrow: bool = False) -> None:
    """The mean to the right, the mean of the worst episodes upwards, both with their intervals."""
    targets = sorted(found.targets, key=lambda each: (kind_of_verdict(each.verdict) == "bad", -each.mean.value))
    sound = sum(kind_of_verdict(each.verdict) != "bad" for each in targets) or len(targets)
    across = limits([_mark(each, each.mean) for each in targets], sound)
    low, high = limits([_mark(each, each.tail) for each in targets], sound)
    up = low, high + ROOM * (high - low)
    frame(axes, across, rounds(*across, 3 if narrow else 6), f"mean, {found.estimand.unit}", up)
    above(axes, shortened(f"mean of the worst {found.alpha:.3g} of episodes", 0.9 * size(axes)[0]))
    spots = [_spot(axes, each) for each in targets]
    for spot in spots:
        _draw(axes, spot)
    _name(axes, spots, most=(0.35 if narrow else 0.3) * size(axes)[0])


def _mark(each: TargetReturns, amount: Amount) -> Mark:
    at = amount.interval
    low, high = (at.low, at.high) if at else (None, None)
    return Mark(each.target, amount.value, low, high, kind_of_verdict(each.verdict))


def _spot(axes: Axes, each: TargetReturns) -> Spot:
    """Cut at the edges of the axes; a point beyond them is an arrow at the edge."""
    kind, wide, high = kind_of_verdict(each.verdict), axes.get_xlim(), axes.get_ylim()
    x, y = _inside(each.mean.value, wide), _inside(each.tail.value, high)
    left, right, low, top = x > each.mean.value, x < each.mean.value, y > each.tail.value, y < each.tail.value
    marker = "<" if left else ">" if right else "v" if low else "^" if top else MARKER[kind]
    across = None if low or top else _whisker(each.mean, wide)
    up = None if left or right else _whisker(each.tail, high)
    return Spot(each.target, COLOURS[kind][0], marker, (x, y), across, up)


def _inside(value: float, edges: Place) -> float:
    return min(max(value, edges[0]), edges[1])


def _whisker(amount: Amount, edges: Place) -> Place | None:
    """The interval, as far as it lies inside."""
    found = amount.interval
    if found is None or not math.isfinite(found.low) or not math.isfinite(found.high):
        return None
    return _inside(found.low, edges), _inside(found.high, edges)


def _draw(axes: Axes, spot: Spot) -> None:
    (x, y), style = spot.at, {"linewidth": 1.5, "alpha": 0.75, "solid_capstyle": "butt", "zorder": 2}
    if spot.across is not None:
        axes.plot(spot.across, (y, y), color=spot.colour, **style)  # type: ignore[arg-type]
    if spot.up is not None:
        axes.plot((x, x), spot.up, color=spot.colour, **style)  # type: ignore[arg-type]
    axes.plot(x, y, marker=spot.marker, markersize=8, color=spot.colour, linestyle="none", clip_on=False, zorder=4)


def _name(axes: Axes, spots: Sequence[Spot], most: float) -> None:
    """Names of the first, each on at most so many CSS pixels, beside their points."""
    frame, sheet = axes.get_position(), size(axes)
    wide, high = frame.width * sheet[0], frame.height * sheet[1]
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()

    def pixels(at: Place) -> Place:
        return wide * (at[0] - left) / (right - left), high * (at[1] - bottom) / (top - bottom)

    points = [pixels(spot.at) for spot in spots]
    words = [shortened(spot.name, most) for spot in spots[:MOST_NAMED]]
    lines = [PixelBox(*pixels(ends[0]), *pixels(ends[1])) for spot in spots for ends in _ends(spot)]
    placed = places(points, [width(word) + GAP for word in words], PixelBox(0.0, 0.0, wide, high), lines)
    for word, point, box in zip(words, points, placed, strict=False):
        at = (box.left + box.right) / 2 / wide, (box.bottom + box.top) / 2 / high
        axes.text(*at, word, transform=axes.transAxes, ha="center", va="center_baseline", color=INK, zorder=5)
        end = box.nearest(point)
        if math.dist(end, point) > RINGS[1]:
            pair = zip(*((x / wide, y / high) for x, y in (point, end)), strict=True)
            axes.plot(*pair, transform=axes.transAxes, color=MUTED, linewidth=0.8, zorder=3)


def _ends(spot: Spot) -> Iterable[tuple[Place, Place]]:
    """Of its whiskers, in the units of the axes."""
    (x, y), across, up = spot.at, spot.across, spot.up
    yield from [((across[0], y), (across[1], y))] if across else []
    yield from [((x, up[0]), (x, up[1]))] if up else []


def places(
    points: Sequence[Place], widths: Sequence[float], page: PixelBox, lines: Sequence[PixelBox]
) -> list[PixelBox]:
    """Where names of these widths stand, one for each of the first points: in turn, each where it disturbs least."""
    spots = [PixelBox.around(point, 2 * POINT, 2 * POINT) for point in points]
    placed: list[PixelBox] = []
    for k, ((x, y), wide) in enumerate(zip(points, widths, strict=False)):
        options = [
            (PixelBox.around((x + dx * (ring + wide / 2), y + dy * (ring + LINE / 2)), wide, LINE), ring)
            for ring, (dx, dy) in product(RINGS, SIDES)
        ]
        free = [(box, ring) for box, ring in options if page.holds(box)] or options[:1]
        others = [*placed, *spots[:k], *spots[k + 1 :]]
        cost = [
            1e6 * _met(box, placed)
            + 1e4 * _met(box, spots)
            + 200.0 * any(_met(step, others) for step in _leader((x, y), box))
            + 45.0 * _met(box, lines)
            + ring
            for box, ring in free
        ]
        placed.append(free[cost.index(min(cost))][0])
    return placed


def _met(box: PixelBox, others: Iterable[PixelBox]) -> int:
    """How many of the others it meets."""
    return sum(box.meets(other) for other in others)


def _leader(point: Place, box: PixelBox) -> Iterable[PixelBox]:
    """Steps on the way from a point to its name."""
    end = box.nearest(point)
    steps = int(math.dist(end, point) / POINT)
    for k in range(1, steps + 1):
        share = k / (steps + 1)
        at = point[0] + share * (end[0] - point[0]), point[1] + share * (end[1] - point[1])
        yield PixelBox.around(at, 1.0, 1.0)
