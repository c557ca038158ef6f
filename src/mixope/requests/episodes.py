"""Episode sums: per-row scores added up by episode, and whether an episode's rows fit together.

Scores are linear in the row basis (1, r, 1/p, r/p, first row of its episode) with coefficients that depend on the
transition only, so one join with a small score table and one GROUP BY by episode serve any number of targets at once.

The same scan checks the structure without sorting. Steps 0…n−1 have known Σ step and Σ step². And if every state has a
random signature h, an unbroken chain has Σ h(s′) − Σ h(s) = h(last s′) − h(first s): a broken one almost never ends
in a state's signature. Rows whose steps changed places are caught by Σ (t+1) h(s′) − t h(s), which telescopes too.
:mod:`mixope.logs.checks` then looks at the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray, digest_arrays, sum_by
from mixope.base.estimand import Estimand
from mixope.logs import EPISODE_KEYS, UNFOLLOWED, Schema
from mixope.requests.checksum import Sums, signature
from mixope.requests.clusters import Clusters, units_of
from mixope.requests.grouping import Aggregate, Grouping, GroupSums, Lookup
from mixope.requests.limits import Limit
from mixope.requests.odd_rewards import OddRewards
from mixope.requests.probes import EpisodeProbes, Probes, read_probes
from mixope.requests.quantities import discount, within
from mixope.requests.repeats import CONTENT, Repeats
from mixope.requests.replay import Replay
from mixope.requests.request import Batch, RowRequest
from mixope.requests.scores import FACTORS, ClusterScores
from mixope.requests.sentinels import Sentinel
from mixope.requests.shifts import Shifts
from mixope.requests.stale import Staleness
from mixope.requests.trajectories import OrderedRows
from mixope.requests.transitions import BASIS, Transitions, transition_keys

_TOTALS = (
    Aggregate("rows", "count"),
    Aggregate("starts", "sum", ("start",)),
    Aggregate("earned", "sum", ("reward",)),
    Aggregate("ended", "max", ("terminated",)),
    Aggregate("cut", "max", ("truncated",)),
    Aggregate("unfollowed", "sum", (UNFOLLOWED,)),
    Aggregate("unfollowed_earned", "sum", (UNFOLLOWED, "reward")),
)
_STRUCTURE = (
    Aggregate("steps", "sum", ("step",)),
    Aggregate("steps_squared", "sum", ("step", "step")),
    Aggregate("first", "sum", ("h_state", "start")),
    Aggregate("leaving", "sum", ("h_state",)),
    Aggregate("arriving", "sum", ("h_next",)),
    Aggregate("leaving_by_step", "sum", ("h_state", "step")),
    Aggregate("arriving_by_step", "sum", ("h_next", "step")),
)
SURVEYED = (
    *_TOTALS,
    Aggregate("lowest", "min", ("reward",)),
    Aggregate("highest", "max", ("reward",)),
    Aggregate("unrecorded", "sum", ("no_propensity",)),
)

if TYPE_CHECKING:
    from mixope.requests.vector_pasts import VectorTrace
"""What a survey of logs that are not counted is made of."""
RETURNS = "returns"
_ROUNDING = 1e-9
"""Telescoping sums of numbers that fit together differ from each other by less than this share of their size."""


@dataclass(frozen=True)
class EpisodeTotals:
    """Of every episode: its logger's number, its rows, what it earned, whether its start was logged, its end, a cut.

    A mean over rows means different things: of ``whole`` episodes it is the average of a process that starts again, of
    episodes that were all cut after the same number of steps it is the mean over that ``horizon``.
    """

    logger: IntArray
    rows: FloatArray
    reward: FloatArray
    starts: FloatArray
    ended: FloatArray
    cut: FloatArray
    """Whether a row says that the recorder stopped there."""
    unfollowed: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Rows after which nobody knows what came; there are none where nothing is said of them."""
    unfollowed_reward: FloatArray = field(default_factory=lambda: np.zeros(0))
    """What these earned."""
    unit: IntArray | None = None
    """Who it belongs to, by number; None where every episode is its own."""

    def __post_init__(self) -> None:
        for name in ("unfollowed", "unfollowed_reward"):
            if len(getattr(self, name)) < len(self.rows):
                object.__setattr__(self, name, np.zeros(len(self.rows)))

    def of(self, logger: int) -> EpisodeTotals:
        """One logger's."""
        return self._take(self.logger == logger)

    def without(self, logger: int) -> EpisodeTotals:
        """All but one logger's; the others close ranks."""
        rest = self._take(self.logger != logger)
        return replace(rest, logger=rest.logger - (rest.logger > logger))

    def _take(self, chosen: BoolArray) -> EpisodeTotals:
        known: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        some: dict[str, Any] = {name: None if x is None else x[chosen] for name, x in known.items()}
        return EpisodeTotals(**some)

    def clusters(self, estimand: Estimand = Estimand()) -> Clusters:
        """What is independent: units or episodes, as large as they count in what is asked."""
        return Clusters.of(self.unit, self.rows if estimand.restarts else np.ones(len(self.rows)))

    @property
    def whole(self) -> bool:
        """Whether every episode was logged from its start to a true end."""
        return bool(np.all(self.ended == 1) and np.all(self.starts == 1))

    @property
    def followed_steps(self) -> int | None:
        """The step to which half of the episodes that had not ended by then were followed, by Kaplan and Meier.

        The longest episode where none was cut; None where some lack their first steps.
        """
        if not len(self.rows) or not np.all(self.starts == 1):
            return None
        length, number = np.unique(self.rows, return_inverse=True)
        ends, cuts = (sum_by(number.ravel(), (self.ended == ended).astype(np.float64)) for ended in (1, 0))
        there = np.cumsum((ends + cuts)[::-1])[::-1] - ends
        kept = np.cumprod(1.0 - np.divide(cuts, there, out=np.zeros_like(cuts), where=there > 0))
        fewer = np.flatnonzero(kept <= 0.5)
        return int(length[fewer[0]] if len(fewer) else length[-1])

    @property
    def horizon(self) -> int | None:
        """T, if every episode began at its start and was cut after T steps or ended for good before; else None."""
        if self.whole or not np.all(self.starts == 1):
            return None
        cut, longest = self.rows[self.ended == 0], float(self.rows.max())
        return int(longest) if cut.min() == longest else None


@dataclass(frozen=True)
class EpisodeSums:
    """What the logs are, episode by episode: totals, those whose rows do not fit together, what checks look at."""

    totals: EpisodeTotals
    irregular_steps: BoolArray
    broken_chain: BoolArray
    probes: EpisodeProbes | None = None
    mean_step: float = 0.0
    ordered: OrderedRows | None = None
    """The rows of all episodes in order, where there are not too many."""
    early: Replay | None = None
    """Where there are more rows: what the counts predict of early and of later steps, beside what was seen."""
    repeats: Repeats | None = None
    shifts: Shifts | None = None
    """Where states are vectors: whether rewards belong to the rows that they stand in."""
    staleness: Staleness | None = None
    """Where states are vectors: whether actions were chosen in the states that they stand beside."""
    pasts: tuple[VectorTrace, ...] = ()
    """Where states are vectors: what happened before a row, and whether it tells more than the state."""
    learning: float | None = None
    """Where rows are in order: how far loggers followed the luck of their own rows, in standard deviations."""
    limit: Limit | None = None
    """Where states are vectors: whether the longest episodes end because of their length."""
    odd: OddRewards | None = None
    """What is odd about the rewards, where those of single rows are at hand."""
    sentinels: tuple[Sentinel, ...] = ()
    """Numbers among the states that stand for something else."""
    returns: FloatArray | None = None
    """Σ γᵗ r, or the sum of the rewards within the horizon, where the estimand asks for it."""

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
    besides: Sequence[Aggregate] = (),
    marks: Probes | None = None,
) -> tuple[Lookup, Grouping]:
    """The score table keyed by raw transition, and the grouping that sums it by episode.

    Each item of ``scores`` has shape (groups, len(BASIS)); coefficients that are zero throughout cost nothing. With
    ``probes`` their columns are summed too, and scores by step. ``besides`` are other sums of the rows,
    ``marks`` those that tell repeated episodes.
    """
    keys = transition_keys(schema)
    table = groups.keyed_by(keys)
    of_state = _signatures(transitions.n_states, seed)
    columns: dict[str, FloatArray] = {
        "h_state": of_state[transitions.state],
        "h_next": np.where(transitions.next_state < 0, 0.0, of_state[np.maximum(transitions.next_state, 0)]),
    }
    aggregates = [*_TOTALS, *_STRUCTURE, *besides]
    for number, coefficients in enumerate(scores):
        for position, basis in enumerate(BASIS):
            if np.any(coefficients[:, position]):
                name = f"c{number}_{basis}"
                columns[name] = coefficients[:, position]
                aggregates.append(Aggregate(f"score{number}_{basis}", "sum", (name, *FACTORS[basis])))
                if probes and basis != "starts":  # the first row is at a step that is known
                    aggregates.append(Aggregate(f"step{number}_{basis}", "sum", (name, "step", *FACTORS[basis])))
    for more in (probes, marks):
        columns.update(more.columns if more else {})
        aggregates.extend(more.aggregates if more else ())
    import pyarrow as pa

    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    by_episode = (*EPISODE_KEYS, *schema.unit)
    return Lookup(table, keys), Grouping(by_episode, tuple(aggregates), digest_arrays(list(columns.values())))


@dataclass(frozen=True)
class EpisodeSurvey:
    """The request for what the logs are, episode by episode, where transitions are counted.

    Where the ``estimand`` is a sum, with that of what each episode earned. Whoever holds the counts answers it with
    :class:`EpisodeSums`.
    """

    seed: int = 0
    estimand: Estimand = field(default_factory=Estimand)


def cluster_scores(groups: GroupSums, n_scores: int, base: int) -> list[ClusterScores]:
    """The scores of every table, read off the grouped result; Σ step · score besides where it was summed."""
    probed = "expected" in groups.grouping.names
    late = _by_step(groups, n_scores, base) if probed else None
    scores = _summed(groups, "score", n_scores)
    return [ClusterScores(scores[:, k], late=None if late is None else late[:, k]) for k in range(n_scores)]


def episode_sums(groups: GroupSums, transitions: Transitions, base: int, seed: int = 0) -> EpisodeSums:
    """Read the structure off the grouped result."""
    probed = "expected" in groups.grouping.names
    return EpisodeSums(
        totals=episode_totals(groups, transitions.loggers),
        irregular_steps=_irregular_steps(groups, base),
        broken_chain=_broken_chains(groups, transitions, base, seed),
        probes=read_probes(groups) if probed else None,
        mean_step=float(groups.column("steps").sum()) / max(float(groups.column("rows").sum()), 1.0),
        returns=groups.column(RETURNS) if RETURNS in groups.grouping.names else None,
    )


def return_of(estimand: Estimand, base: int) -> Aggregate:
    """The sum of what an episode earned, as the estimand counts it: Σ γᵗ r, or Σ r over the first T steps."""
    counts = discount(estimand.discount, base) if estimand.horizon is None else within(estimand.horizon, base)
    return Aggregate(
        RETURNS, "sum", ("reward",) if estimand.discount == 1.0 and not estimand.horizon else (counts, "reward")
    )


def sums_of_counts(transitions: Transitions, seed: int = 0) -> Sums:
    """What the scan by episode must add up to, from the counts of an earlier one."""
    t, h = transitions, _signatures(transitions.n_states, seed)
    here, there = h[t.state], np.where(t.next_state < 0, 0.0, h[np.maximum(t.next_state, 0)])
    most = np.maximum(np.abs(t.lowest), np.abs(t.highest))
    total, size = (t.rows.sum(), t.reward.sum()), (t.rows.sum(), t.rows @ most)
    states = t.rows @ here, t.rows @ there
    return Sums(np.array([*total, *states]), np.array([*size, *states]))


def sums_of_episodes(groups: GroupSums) -> Sums:
    """The same from sums by episode."""
    total = np.array([groups.column(name).sum() for name in ("rows", "earned", "leaving", "arriving")])
    size = groups.column("size").sum() if "size" in groups.grouping.names else 0.0
    return Sums(total, np.array([total[0], 0.0, size, size]))


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
    units, number = units_of(groups), {label: j for j, label in enumerate(loggers)}
    labels = groups.values("policy_id").astype(str)
    logger = np.array([number[label] for label in labels.tolist()], dtype=np.int64)
    return EpisodeTotals(
        logger,
        rows=groups.column("rows"),
        reward=groups.column("earned"),
        starts=groups.column("starts"),
        ended=groups.column("ended"),
        cut=groups.column("cut"),
        unfollowed=groups.column("unfollowed"),
        unfollowed_reward=groups.column("unfollowed_earned"),
        unit=units,
    )


def _signatures(n_states: int, seed: int) -> FloatArray:
    """Random integers below 2³¹: their sums are exact in float64 for episodes of up to four million rows."""
    return np.random.default_rng([seed, 31]).integers(1, 1 << 31, size=n_states).astype(np.float64)


@dataclass(frozen=True)
class EpisodeShape(RowRequest):
    """The request for the totals and the structure of every episode, where states are not counted.

    The signature of a state is a random linear functional of its numbers, or a hash of its ids: what telescopes along
    an episode does so for any function of the state.
    """

    seed: int = 0

    sees_unfollowed = True

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """What a row holds, and whether the recorder stopped there."""
        return (*super().columns(schema), "truncated")

    def of(self, batch: Batch) -> GroupSums:
        """The sums of some rows."""
        import pyarrow as pa

        rows = batch.rows
        here = signature(rows.observation, self.seed)
        there = np.where(batch.follows, signature(rows.next_observation, self.seed), 0.0)
        step = np.asarray(batch.table.column("step").to_numpy(), dtype=np.float64)
        done = action_signature(rows.action, self.seed)
        with np.errstate(over="ignore", invalid="ignore"):  # whoever reads the sums says so
            size = (np.abs(here) + np.abs(there) + np.abs(done)) * (np.abs(step) + 1.0)
            content = here + 0.5 * there + done
        table = batch.table
        for name, values in (("h_state", here), ("h_next", there), ("h_size", size), ("h_row", content)):
            table = table.append_column(name, pa.array(values))
        aggregates = (*SURVEYED, *_STRUCTURE, *CONTENT, Aggregate("size", "sum", ("h_size",)))
        by_episode = (*EPISODE_KEYS, *batch.schema.unit)
        return GroupSums.zero(Grouping(by_episode, aggregates, f"shape {self.seed}")).update(table)


def action_signature(actions: AnyArray, seed: int) -> FloatArray:
    """A number for every action, of the size of the numbers that it holds; ids are spread over (0, 1)."""
    found = signature(actions, seed + 1)
    return found if actions.dtype.kind == "f" else found / (1 << 31)


def misfits_of_rows(groups: GroupSums, base: int) -> tuple[BoolArray, BoolArray]:
    """Episodes whose steps are irregular, and those whose next states are not the states that follow.

    With F the first and L the last signature, Σ h(s′) − Σ h(s) = L − F, which is −F after a true end, or where nobody
    knows what came after the last row, and
    Σ (t+1) h(s′) − t h(s) = (base + n) L − base F.
    """
    first, size = groups.column("first"), _ROUNDING * groups.column("size")
    last = groups.column("arriving") - groups.column("leaving") + first
    by_step = groups.column("arriving_by_step") + groups.column("arriving") - groups.column("leaving_by_step")
    expected = (base + groups.column("rows")) * last - base * first
    broken = np.abs(by_step - expected) > size
    broken |= (groups.column("ended") == 1) & (np.abs(last) > size)
    return _irregular_steps(groups, base), np.asarray(broken & (groups.column("starts") == 1), dtype=np.bool_)


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
