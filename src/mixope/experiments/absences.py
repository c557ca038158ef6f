"""Units without a row: what is made of the periods in which a unit that had entered was not seen.

A table of visits has rows for the days on which somebody came. Whether the others earned nothing or were not recorded
is not in the table, and it decides the answer where treatment drives units away. So it can be said:

    unknown   nobody was watching: such periods are left out, and a unit that stays away is cut off
    zero      the unit earned nothing: a row is added, with metrics of 0, the state as it was last seen, and how long
              ago that was

A unit is watched from its first row to the last period of the table, and no longer than any unit has rows: tests that
end on one day, and tests that watch every unit for as long, are both met.

Where nobody came back after having been away for long, such units are gone: what they were like before is forgotten, so
that all of them together bear out that nobody comes back, and not a few in each of many states.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixope.base.errors import Advice, DataError, Setting
from mixope.checks import Check, Diagnostic
from mixope.checks.check import EXPERIMENT
from mixope.checks.verdicts import Status
from mixope.experiments.classes import Coded
from mixope.experiments.design import ExperimentDesign
from mixope.logs.sources import quote

if TYPE_CHECKING:
    from mixope.experiments.chains import Pair
    from mixope.experiments.panel import Panel

MOST_AWAY = 7
"""Units that are away for longer than this count as alike; in short tests sooner, so that early periods show it too."""
HERE, GONE = "0", "gone"
SAMPLE = 64
"""One unit in so many is looked at first: where anybody comes back, some of these do."""
LOST = 0.9
"""A share of units that are away in the long run, beyond which another question is advised."""
FEW = 0.05
"""A share of units that may leave before anybody must say what it means."""
MUCH = 0.1
"""A difference of these shares beyond which there is no answer until somebody says."""
FEW_RETURNS, ENOUGH_RETURNS = 10, 30
"""How often units must come back in each arm, after having been away for long, to say what the long run is like."""
HARDLY = 0.01
"""A share of the rows that units who are away for long may have before that matters."""
APART = 3.0
"""Standard errors by which the arms may differ in the share of units that leave."""
LEAVING = Check(
    "leaving",
    "data",
    EXPERIMENT,
    Advice(
        "if a unit without a row earned nothing, say ",
        Setting("absent", "zero"),
        ", and if it was not watched, ",
        Setting("absent", "unknown"),
    ),
)
COMING_BACK = Check(
    "coming back",
    "data",
    EXPERIMENT,
    Advice("ask for the worth of a unit from its entry: ", Setting("estimand", "horizon")),
)


@dataclass(frozen=True)
class Watch:
    """Until when units are watched: the last period of the table, and the longest time that any unit has rows for."""

    last: int
    longest: int
    periods: int
    """Of all units together."""
    gone: bool = False
    """Nobody came back after having been away for long."""

    @property
    def long_away(self) -> int:
        """Periods after which units that are away count as alike."""
        return min(max(self.longest // 4, 1), MOST_AWAY)

    def states(self, coded: Mapping[str, Coded], design: ExperimentDesign) -> dict[str, Coded]:
        """The columns of the state, and for how many periods a unit has been away; 0 in the rows of the table."""
        classes = (HERE, *map(str, range(1, self.long_away)), f"{self.long_away} or more")
        known = {
            name: replace(found, classes=(*found.classes, GONE)) if self.gone else found
            for name, found in coded.items()
        }
        return {**known, away(design): Coded("CAST(0 AS SMALLINT)", classes)}


def away(design: ExperimentDesign) -> str:
    """What the column of that is called."""
    return f"{design.period}s away"


def with_units(rows: str) -> str:
    """The beginning of a query: ``units``, each with its arm, its first and last row, and until when it is watched.

    ``whole`` is materialised because DuckDB 1.1 refuses to join a part with one that reads it and is not.
    """
    return f"""WITH seen AS MATERIALIZED (SELECT arg_max(assigned, day) AS arm,
    min(assigned) = max(assigned) AS one_arm, min(day) AS first, max(day) AS last FROM {rows} GROUP BY unit),
    whole AS MATERIALIZED (SELECT max(last) AS final, max(last - first) + 1 AS longest FROM seen),
    units AS (SELECT *, least(first + longest - 1, final) AS until FROM seen, whole)"""


def watch_of(connection: Any, raw: str, design: ExperimentDesign, name: str) -> Watch:
    """How long units are watched; units that change their arm have none while they are away."""
    last, longest, periods, changed = connection.execute(
        f"""{with_units(raw)} SELECT any_value(final), any_value(longest), sum(until - first + 1),
        count(*) FILTER (NOT one_arm) FROM units"""
    ).fetchall()[0]
    if changed:
        raise DataError(
            f"{changed:,} units change their arm, so that the arm of a {design.period} without a row is not known",
            where=name,
            column=design.arm,
            expected=Advice("one arm per unit, with ", Setting("absent", "zero")),
            hint=f"write the rows of all {design.period}s, with their arm and metrics of 0, and leave this out",
        )
    watch = Watch(int(last), int(longest), int(periods))
    back = any(_comes_back(connection, raw, watch.long_away, some) for some in ("= 0", ">= 0"))
    return replace(watch, gone=not back)


def _comes_back(connection: Any, raw: str, periods: int, some: str) -> bool:
    """Whether, of some units, any was seen again after so many periods without a row."""
    rows = f"SELECT unit, day FROM {raw} WHERE hash(CAST(unit AS VARCHAR)) % {SAMPLE} {some}"
    gaps = f"SELECT lead(day) OVER w - day - 1 AS missed FROM ({rows}) {WINDOW}"
    return bool(connection.execute(f"SELECT coalesce(max(missed), 0) >= {periods} FROM ({gaps})").fetchall()[0][0])


def filled(rows: str, coded: Mapping[str, Coded], design: ExperimentDesign, watch: Watch) -> str:
    """The rows and those that were added, as a relation."""
    end = f"least(first_value(day) OVER w + {watch.longest - 1}, {watch.last})"
    back = f"SELECT *, coalesce(lead(day) OVER w, {end} + 1) AS back FROM {rows}"
    spread = f"SELECT *, unnest(range(day, greatest(back, day + 1))) AS now FROM ({back} {WINDOW})"
    there = {
        "day": "now",
        **{
            quote(f"metric {name}"): f"CASE WHEN now = day THEN {quote(f'metric {name}')} ELSE 0 END"
            for name in design.metrics
        },
        quote(f"state {away(design)}"): f"CAST(least(now - day, {watch.long_away}) AS SMALLINT)",
    }
    moved = {quote(f"state {name}"): found.sql for name, found in coded.items() if found.of_period}
    whole = f"(SELECT * {_replaced(moved)} FROM (SELECT * EXCLUDE (back, now) {_replaced(there)} FROM ({spread})))"
    if not watch.gone:
        return whole
    lost = f"{quote(f'state {away(design)}')} = {watch.long_away}"
    forgotten = {
        quote(f"state {name}"): f"CASE WHEN {lost} THEN {len(found.classes) - 1} ELSE {quote(f'state {name}')} END"
        for name, found in coded.items()
        if name != away(design)
    }
    return f"(SELECT * {_replaced(forgotten)} FROM {whole})"


WINDOW = "WINDOW w AS (PARTITION BY unit ORDER BY day)"


def _replaced(columns: Mapping[str, str]) -> str:
    return f"REPLACE ({', '.join(f'{sql} AS {name}' for name, sql in columns.items())})" if columns else ""


def leaving_check(panel: Panel, treatment: str, control: str) -> Diagnostic:
    """Do units stay to the end of the test, and as many in both arms?

    Where they do not, the sign of the effect may depend on what it means to be away: that must be said.
    """
    design, units = panel.design, {arm: n for arm, n, _ in panel.facts.arms}
    shares = {arm: panel.facts.left.get(arm, 0) / units[arm] for arm in (treatment, control)}
    apart = _apart(*((panel.facts.left.get(arm, 0), units[arm]) for arm in (treatment, control)))
    listed = " and ".join(f"{share:.1%} of the units of {arm}" for arm, share in shares.items())
    said = f"{listed} have no row at the end of the time for which they were watched"
    mend = Advice("; if a unit without a row earned nothing, say ", Setting("absent", "zero"))
    if design.absent is None:
        mend = Advice(mend, ", and if it was not watched, ", Setting("absent", "unknown"))
    most, least = max(shares.values()), min(shares.values())
    if apart > APART:
        harm = f"{said} ({apart:.1f} standard errors apart): those who stay are not the same in both arms"
        status: Status = "fail" if most - least > MUCH and design.absent is None else "warn"
        return LEAVING.diagnostic(apart, APART, status, Advice(harm, mend))
    if most > FEW and design.absent is None:
        return LEAVING.diagnostic(most, FEW, "warn", Advice(said, ": nobody said what that means", mend))
    stay = f"{said}, which is as many in both arms" if most else "all units have rows to the end"
    return LEAVING.diagnostic(apart, APART, "pass", stay)


def coming_back_check(panel: Panel, treatment: str, control: str) -> Diagnostic:
    """Do units that have been away for long come back, and often enough to tell how many are there in the long run?"""
    rows = {arm: n for arm, _, n in panel.facts.arms}
    share = max(panel.facts.long_away[arm][0] / rows[arm] for arm in (treatment, control))
    came = {arm: panel.facts.long_away[arm][1] for arm in (treatment, control)}
    fewest, limit = float(min(came.values())), float(ENOUGH_RETURNS)
    after = f"after {panel.classes[away(panel.design)][-1]} {panel.design.period}s away"
    listed = " and ".join(f"{n:,} times in {arm}" for arm, n in came.items())
    if share <= HARDLY or fewest >= ENOUGH_RETURNS:
        said = (
            f"units came back {listed} {after}" if share > HARDLY else f"{share:.1%} of the rows are of units {after}"
        )
        return COMING_BACK.diagnostic(fewest, limit, "pass", said, "at least")
    harm = f"nobody came back {after}" if not sum(came.values()) else f"units came back only {listed} {after}"
    status: Status = "fail" if sum(came.values()) > 0 and fewest < FEW_RETURNS else "warn"
    mend = Advice(
        ": so long a run is not to be seen in this test; for the worth of a unit from its entry, say ",
        *_from_entry(panel),
    )
    return COMING_BACK.diagnostic(fewest, limit, status, Advice(harm, mend), "at least")


def _from_entry(panel: Panel) -> tuple[Setting | str, ...]:
    return Setting("estimand", "horizon"), " and ", Setting("horizon", panel.facts.longest * 2)


def _apart(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Two shares, in standard errors of their difference."""
    (left, n), (other, m) = first, second
    pooled = (left + other) / (n + m)
    error = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return abs(left / n - other / m) / error if error else 0.0


def about_absences(panel: Panel) -> list[str]:
    """What was made of periods without a row, in words."""
    facts, design = panel.facts, panel.design
    found = []
    if facts.added:
        found.append(
            f"{facts.added:,} of {facts.rows:,} rows were added: a unit without a row in a {design.period} earned"
            " nothing then"
        )
    lost, came = (sum(counts) for counts in zip(*facts.long_away.values(), strict=True))
    if lost and not came:
        after = f"{panel.classes[away(design)][-1]} {design.period}s away"
        found.append(f"nobody was seen to come back after {after}: such units count as gone for good")
    if facts.gaps:
        found.append(
            f"after {facts.gaps:,} of {facts.rows:,} rows the unit has no row in the next {design.period}: what happens"
            " over such a gap is not used as a step"
        )
    if gone := sum(facts.left.values()):
        found.append(
            f"{gone:,} of {facts.units:,} units have no row at the end of the time for which they were watched: they"
            " count as no longer watched, not as lost"
        )
    if found and design.absent is None:
        found[-1] = Advice(found[-1], ". If a unit without a row earned nothing, say ", Setting("absent", "zero"))
    return found


def about_the_lost(panel: Panel, pair: Pair) -> list[str]:
    """A long run in which hardly anybody is left is no question for a product that new units join."""
    if panel.design.absent != "zero":
        return []
    column = pair.counts.columns.index(away(panel.design))
    gone = np.array([state[column] != HERE for state in pair.counts.states])
    treated, plain = (float(law[gone].sum()) for law in pair.laws)
    if min(treated, plain) < LOST:
        return []
    said = (
        f"in the long run {plain:.0%} of the units of {pair.counts.arms[pair.control]} and {treated:.0%} of those of"
        f" {pair.counts.arms[pair.treatment]} are away: what is left of the difference is that of the few who stay. For"
        " the worth of a unit from its entry, say "
    )
    return [Advice(said, *_from_entry(panel))]
