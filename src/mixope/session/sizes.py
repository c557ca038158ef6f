"""What must fit in memory, asked before the first scan of long logs.

Rows never have to fit. What does is what comes of them: the distinct transitions, the states behind them, and a line
for every episode. How many there are is guessed from a few stretches of rows, spread evenly over the logs. With d kinds
seen in T of M stretches, q₁ of them in one stretch and q₂ in two, unseen kinds number at least about (Chao)

    q₀ = (T − 1) / T · q₁ (q₁ − 1) / 2 (q₂ + 1)     and     d + q₀ (1 − (1 − q₁ / (T q₀ + q₁))^(M − T))

are expected in all M. A kind that lives in one stretch only counts in proportion to the rows, one that is everywhere
counts once. That errs downwards where there are many rare kinds; d (M / T)^(q₁ / d), which goes on growing as it did
last, errs upwards. Logs are refused by the former alone, and only where it is far beyond the limit.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mixope.base.errors import Advice, MixopeError, MixopeWarning, Setting, UsageError
from mixope.logs import EPISODE_KEYS, Logs, reading
from mixope.logs.database import available_bytes, bytes_of, release_unused, resident_bytes
from mixope.logs.sources import quote
from mixope.logs.stretches import Stretch, stretches
from mixope.requests.transitions import transition_keys

LONG = 5_000_000
"""Rows below which nothing is asked: a scan takes no longer than the answer."""
STRETCHES, ROWS = 32, 32_768
"""What is looked at: 32 stretches of as many rows."""
PER_TRANSITION, PER_STATE, PER_EPISODE = 600, 300, 700
"""Bytes at the peak of an evaluation of one target, measured (docs/benchmarks.md)."""
SURELY = 2.0
"""Logs are refused where they need so many times what there is, by the guess that errs downwards."""


@dataclass(frozen=True)
class Number:
    """A guess at how many kinds there are, downwards and upwards."""

    least: float
    most: float


@dataclass(frozen=True)
class Sizes:
    """What is guessed of logs; no transitions and states where they are not counted."""

    rows: int
    transitions: Number
    states: Number
    episodes: Number

    def bytes(self, which: str) -> float:
        """What has to fit, by the ``least`` or the ``most``."""
        parts = ((self.transitions, PER_TRANSITION), (self.states, PER_STATE), (self.episodes, PER_EPISODE))
        return float(sum(getattr(number, which) * each for number, each in parts))


def foresee(logs: Logs, *, counted: bool) -> Sizes | None:
    """The sizes of logs; ``counted``: by transitions, too. None where they could not be learned at a small price."""
    schema, found = logs.schema, stretches(logs, STRETCHES, ROWS)
    if len(found) < 2:
        return None
    kinds: dict[str, tuple[str, ...]] = {"episode": EPISODE_KEYS}
    if counted:
        kinds |= {"transition": transition_keys(schema), "state": schema.observation}
    numbers = _numbers(logs, found, kinds)
    release_unused()
    nothing = Number(0.0, 0.0)
    return Sizes(
        logs.total_rows(), numbers.get("transition", nothing), numbers.get("state", nothing), numbers["episode"]
    )


def _numbers(logs: Logs, found: Sequence[Stretch], kinds: dict[str, tuple[str, ...]]) -> dict[str, Number]:
    """Of every kind of thing, by the stretches in which its hashes lie."""
    with logs.connect() as connection, reading(logs.name):
        parts = (_hashes(number, stretch, kinds, connection) for number, stretch in enumerate(found))
        connection.execute(f"CREATE TEMP TABLE looked_at AS {' UNION ALL '.join(parts)}")
        rows = int(connection.execute("SELECT count(*) FROM looked_at").fetchone()[0])
        whole = logs.total_rows() * len(found) / max(rows, 1)
        numbers = {}
        for name in kinds:
            parts_of = f"SELECT count(DISTINCT part) AS parts FROM looked_at GROUP BY {name}"
            counts = dict(connection.execute(f"SELECT parts, count(*) FROM ({parts_of}) GROUP BY parts").fetchall())
            numbers[name] = guess(sum(counts.values()), counts.get(1, 0), counts.get(2, 0), len(found), whole)
    return numbers


def _hashes(number: int, stretch: Stretch, kinds: dict[str, tuple[str, ...]], connection: Any) -> str:
    """A SELECT of the hashes in one stretch; episodes that are counted by the order of rows begin anew in each."""
    keys = {name: list(map(quote, columns)) for name, columns in kinds.items()}
    if "episode_id" in stretch.plan.derived:
        keys["episode"].append(str(number))
    hashes = ", ".join(f"hash({', '.join(columns)}) AS {name}" for name, columns in keys.items())
    return f"SELECT {number} AS part, {hashes} FROM ({stretch.query(connection)})"


def guess(seen: int, once: int, twice: int, stretches: int, whole: float) -> Number:
    """How many kinds there are in the ``whole``, a number of stretches, from those seen in some."""
    if seen == 0 or whole <= stretches:
        return Number(float(seen), float(seen))
    unseen = (stretches - 1) / stretches * once * (once - 1) / (2 * (twice + 1))
    share = once / (stretches * unseen + once) if once else 0.0
    least = seen + unseen * -_powered(share, whole - stretches)
    return Number(least, max(least, seen * (whole / stretches) ** (once / seen)))


def _powered(share: float, times: float) -> float:
    """(1 − share)^times − 1, also of small shares."""
    return -1.0 if share >= 1.0 else math.expm1(times * math.log1p(-share))


def refuse_too_large(logs: Logs, *, counted: bool) -> None:
    """Say at once that long logs will not fit in memory, if that is clear; warn if it may be so."""
    if logs.total_rows() < LONG:
        return
    limit, there = logs.bounds[0], None
    if limit is not None:
        there = bytes_of(limit)
    elif (free := available_bytes()) is not None:
        there = free + resident_bytes()
    try:
        sizes = None if there is None else foresee(logs, counted=counted)
    except MixopeError:
        return  # the scan will say what is wrong with the rows
    if sizes is None or there is None:
        return
    held = resident_bytes()
    if held + sizes.bytes("least") > SURELY * there:
        raise UsageError(_too_large(sizes, held, there, "least", limit is not None, counted))
    if held + sizes.bytes("most") > there:
        words = _too_large(sizes, held, there, "most", limit is not None, counted)
        warnings.warn(MixopeWarning(words), stacklevel=2)


def _too_large(sizes: Sizes, held: int, there: int, which: str, limited: bool, counted: bool) -> Advice:
    sure = which == "least"
    many = [(sizes.transitions, "distinct transitions"), (sizes.states, "states"), (sizes.episodes, "episodes")]
    counts = ", ".join(f"{_about(getattr(n, which))} {what}" for n, what in many[0 if counted else 2 :])
    need = f"{(held + sizes.bytes(which)) / 1e9:,.1f} GB"
    beginning = f"these logs {'will' if sure else 'may'} not fit in memory: {sizes.rows:,} rows with"
    found = f"{beginning} {'at least' if sure else 'up to'} about {counts} need about {need}, and there are"
    where = [" allowed; allow more with ", Setting("memory_limit")] if limited else ["; take a larger machine"]
    mostly_episodes = 2 * PER_EPISODE * getattr(sizes.episodes, which) > sizes.bytes(which)
    otherwise = ", or take a part of the episodes" if mostly_episodes else _COARSER
    return Advice(f"{found} {there / 1e9:,.1f} GB", *where, otherwise)


_COARSER = ", make ids coarser so that fewer states differ, or describe states by numbers instead of ids"


def _about(number: float) -> str:
    """Two digits of a guess."""
    return f"{float(f'{number:.1e}'):,.0f}"
