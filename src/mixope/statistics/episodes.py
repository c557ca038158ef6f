"""Episode sums: per-row scores added up by episode, and whether an episode's rows fit together.

Scores are linear in the row basis (1, r, 1/p, r/p, first row of its episode) with coefficients that depend on the
transition only, so one join with a small score table and one GROUP BY by episode serve any number of targets at once.

The same scan checks the structure without sorting. Steps 0…n−1 have known Σ step and Σ step². And if every state has a
random signature h, an unbroken chain has Σ h(s′) − Σ h(s) = h(last s′) − h(first s): a broken one almost never ends
in a state's signature. Rows whose steps changed places are caught by Σ (t+1) h(s′) − t h(s), which telescopes too.
:mod:`mixope.logs.validation` then looks at the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixope.arrays import BoolArray, FloatArray, IntArray, digest_arrays
from mixope.logs import EPISODE_KEYS
from mixope.statistics.grouping import Aggregate, Grouping, GroupSums, Lookup
from mixope.statistics.probes import EpisodeProbes, Probes, read_probes
from mixope.statistics.transitions import BASIS, Transitions, transition_keys

if TYPE_CHECKING:
    from mixope.logs import Schema

_FACTORS = {
    "rows": (),
    "reward": ("reward",),
    "inverse": ("inverse",),
    "inverse_reward": ("inverse", "reward"),
    "starts": ("start",),
}
_SHAPE = (
    Aggregate("rows", "count"),
    Aggregate("steps", "sum", ("step",)),
    Aggregate("steps_squared", "sum", ("step", "step")),
    Aggregate("starts", "sum", ("start",)),
    Aggregate("earned", "sum", ("reward",)),
    Aggregate("ended", "max", ("terminated",)),
    Aggregate("first", "sum", ("h_state", "start")),
    Aggregate("leaving", "sum", ("h_state",)),
    Aggregate("arriving", "sum", ("h_next",)),
    Aggregate("leaving_by_step", "sum", ("h_state", "step")),
    Aggregate("arriving_by_step", "sum", ("h_next", "step")),
)


@dataclass(frozen=True)
class EpisodeTotals:
    """Of every episode: its logger's number, its rows, what it earned, whether its start was logged and its true end.

    A mean over rows means different things: of ``whole`` episodes it is the average of a process that starts again, of
    episodes that were all cut after the same number of steps it is the mean over that ``horizon``.
    """

    logger: IntArray
    rows: FloatArray
    reward: FloatArray
    starts: FloatArray
    ended: FloatArray

    def of(self, logger: int) -> EpisodeTotals:
        """One logger's."""
        mine = self.logger == logger
        return EpisodeTotals(*(getattr(self, name)[mine] for name in self.__dataclass_fields__))

    @property
    def whole(self) -> bool:
        """Whether every episode was logged from its start to a true end."""
        return bool(np.all(self.ended == 1) and np.all(self.starts == 1))

    @property
    def horizon(self) -> int | None:
        """T, if every episode began at its start and was cut after T steps or ended for good before; else None."""
        if self.whole or not np.all(self.starts == 1):
            return None
        cut, longest = self.rows[self.ended == 0], float(self.rows.max())
        return int(longest) if cut.min() == longest else None


@dataclass(frozen=True)
class EpisodeSums:
    """Scores per episode (episodes × score tables), and the episodes whose rows do not fit together.

    Where probes were asked for: these, and Σ step · score in ``by_step``, of the same shape as the scores.
    """

    scores: FloatArray
    totals: EpisodeTotals
    irregular_steps: BoolArray
    broken_chain: BoolArray
    by_step: FloatArray | None = None
    probes: EpisodeProbes | None = None
    mean_step: float = 0.0

    def steps_of(self, number: int) -> FloatArray | None:
        """Σ step · score of one table."""
        return None if self.by_step is None else self.by_step[:, number]

    @property
    def rows(self) -> FloatArray:
        """How many rows every episode has."""
        return self.totals.rows


def score_lookup(
    transitions: Transitions,
    groups: GroupSums,
    schema: Schema,
    scores: Sequence[FloatArray],
    seed: int = 0,
    probes: Probes | None = None,
) -> tuple[Lookup, Grouping]:
    """The score table keyed by raw transition, and the grouping that sums it by episode.

    Each item of ``scores`` has shape (groups, len(BASIS)); coefficients that are zero throughout cost nothing. With
    ``probes`` their columns are summed too, and scores by step.
    """
    keys = transition_keys(schema)
    assert groups.table is not None
    table = groups.table.select(list(keys))
    signature = _signatures(transitions.n_states, seed)
    columns: dict[str, FloatArray] = {
        "h_state": signature[transitions.state],
        "h_next": np.where(transitions.next_state < 0, 0.0, signature[transitions.next_state]),
    }
    aggregates = list(_SHAPE)
    for number, coefficients in enumerate(scores):
        for position, basis in enumerate(BASIS):
            if np.any(coefficients[:, position]):
                name = f"c{number}_{basis}"
                columns[name] = coefficients[:, position]
                aggregates.append(Aggregate(f"score{number}_{basis}", "sum", (name, *_FACTORS[basis])))
                if probes and basis != "starts":  # the first row is at a step that is known
                    aggregates.append(Aggregate(f"step{number}_{basis}", "sum", (name, "step", *_FACTORS[basis])))
    if probes:
        columns.update(probes.columns)
        aggregates.extend(probes.aggregates)
    import pyarrow as pa

    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return Lookup(table, keys), Grouping(EPISODE_KEYS, tuple(aggregates), digest_arrays(list(columns.values())))


def episode_sums(groups: GroupSums, transitions: Transitions, n_scores: int, base: int, seed: int = 0) -> EpisodeSums:
    """Read the scores and the structure off the grouped result."""
    probed = "expected" in groups.grouping.names
    return EpisodeSums(
        scores=_summed(groups, "score", n_scores),
        totals=episode_totals(groups, transitions.loggers),
        irregular_steps=_irregular_steps(groups, base),
        broken_chain=_broken_chains(groups, transitions, base, seed),
        by_step=_by_step(groups, n_scores, base) if probed else None,
        probes=read_probes(groups) if probed else None,
        mean_step=float(groups.column("steps").sum()) / max(float(groups.column("rows").sum()), 1.0),
    )


def _summed(groups: GroupSums, what: str, n_scores: int) -> FloatArray:
    """The parts of every score table, over the basis."""
    sums = np.zeros((groups.n_groups, n_scores))
    names = set(groups.grouping.names)
    for number in range(n_scores):
        for basis in BASIS:
            if f"{what}{number}_{basis}" in names:
                sums[:, number] += groups.column(f"{what}{number}_{basis}")
    return sums


def _by_step(groups: GroupSums, n_scores: int, base: int) -> FloatArray:
    """Σ step · score; the part of a score that belongs to the first row counts at the first step."""
    sums = _summed(groups, "step", n_scores)
    names = set(groups.grouping.names)
    for number in range(n_scores):
        if f"score{number}_starts" in names:
            sums[:, number] += base * groups.column(f"score{number}_starts")
    return sums


def episode_totals(groups: GroupSums, loggers: Sequence[str]) -> EpisodeTotals:
    """From sums by episode that have these; loggers are numbered in the order of their labels."""
    assert groups.table is not None
    number = {label: j for j, label in enumerate(loggers)}
    labels = groups.table.column("policy_id").to_numpy().astype(str)
    logger = np.array([number[label] for label in labels.tolist()], dtype=np.int64)
    return EpisodeTotals(logger, *(groups.column(name) for name in ("rows", "earned", "starts", "ended")))


def _signatures(n_states: int, seed: int) -> FloatArray:
    """Random integers below 2³¹: their sums are exact in float64 for episodes of up to four million rows."""
    return np.random.default_rng([seed, 31]).integers(1, 1 << 31, size=n_states).astype(np.float64)


def _irregular_steps(groups: GroupSums, base: int) -> BoolArray:
    """Steps that cannot be base, base + 1, …; episodes that begin later are judged from their own first step."""
    n, total, squares = groups.column("rows"), groups.column("steps"), groups.column("steps_squared")
    first = np.where(groups.column("starts") > 0, float(base), total / n - (n - 1) / 2)
    expected = n * first + n * (n - 1) / 2
    expected_squares = n * first**2 + first * n * (n - 1) + (n - 1) * n * (2 * n - 1) / 6
    fits = np.abs(total - expected) <= 0.25
    fits &= np.abs(squares - expected_squares) <= 0.25 + 1e-12 * expected_squares
    return np.asarray(~fits, dtype=np.bool_)


def _broken_chains(groups: GroupSums, transitions: Transitions, base: int, seed: int) -> BoolArray:
    """Σ h(s′) − Σ h(s) + h(first s) must be the signature of a state, or 0 after a true end: the last one.

    And Σ (t+1) h(s′) − t h(s) must be (base + n) h(last) − base h(first).
    """
    allowed = np.sort(np.append(_signatures(transitions.n_states, seed), 0.0))
    last = groups.column("arriving") - groups.column("leaving") + groups.column("first")
    position = np.clip(np.searchsorted(allowed, last), 0, len(allowed) - 1)
    by_step = groups.column("arriving_by_step") + groups.column("arriving") - groups.column("leaving_by_step")
    expected = (base + groups.column("rows")) * last - base * groups.column("first")
    swapped = np.abs(by_step - expected) > 0.5 + 1e-13 * groups.column("leaving_by_step")
    checkable = groups.column("starts") == 1
    return np.asarray(checkable & ((allowed[position] != last) | swapped), dtype=np.bool_)
