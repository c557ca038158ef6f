"""Episodes that are exact copies of others, under new ids or by another logger's name.

Rows that are given twice look like more data. Equal episodes have equal sums of whatever is added up along them, so a
few sums tell which ones are alike: their number of rows, Σ h(s), Σ r, and, with a random number m for every step,

    Σ m(t) h(s, a, s′)   and   Σ m(t) r,

which depend on the order of the rows. They come with the scan by episode that is made anyhow.

Short episodes may be alike by chance: a session of one step, a game with few outcomes. On counts, an episode has the
chance  μ₀(s₀) Π π̂(a|s) P̂(s′|s,a) p̂(r|s,a,s′),  with π̂ that of its own logger, drawn towards the logger's actions in
all states where there are few rows. Only where fewer than :data:`EXPECTED` others of its kind are expected among all
episodes is a copy counted. Numbers that were measured never come out alike twice, so that on vectors every copy counts,
unless states do come again in episodes that differ; then the chance of an episode is that of two rows with the same
state to agree on all the rest, multiplied over its rows.

The chance takes actions and outcomes of different rows to be independent. Where something that lasts is not in the
state (customers who never come back, each with an offer of his own), the dullest kinds of episodes come again and again
though their chance is small. Copying does not prefer the dull ones: where a kind comes far more often than others and
hardly any copy is among the less likely half of the kinds, only that half tells.

Copies whose numbers differ in the last digits are found on vectors by sums that are nearer to each other than to those
of any other episode (:func:`near_copies`): of numbers that were measured, ten times as many lie within ten times the
distance, and of copies no more than within the distance itself.

Logs that are repeated as a whole, or those of a logger, show it however short the episodes are: each kind of episode
then comes twice, four times or six times (or thrice, six times …), which by chance has a probability of about m^−kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray, number_tuples, sum_by
from mixope.logs import EPISODE_KEYS
from mixope.requests.grouping import Aggregate, GroupSums, key_codes
from mixope.requests.probes import Probes
from mixope.requests.quantities import MARK, MARKS
from mixope.requests.rows import Rows, episode_hash
from mixope.requests.trajectories import OrderedRows
from mixope.requests.transitions import UNFOLLOWED, Transitions, transition_cells

EXPECTED = 0.01
"""A copy counts where fewer others than this are expected to come out alike by chance."""
LEAST = 20
"""Episodes of which a share is a share."""
CERTAIN = 1e-6
"""The probability below which it is no chance that the numbers of all kinds of episodes have a common divisor."""
KINDS = 10
"""Fewer kinds of episodes may come equally often because somebody planned it."""
CONTENT = (Aggregate("content", "sum", ("h_row", MARK)), Aggregate("paid", "sum", ("reward", MARK)))
"""What tells the content of an episode, in the order of its rows; ``h_row`` is a signature of (s, a, s′)."""
_CHANCE = (Aggregate("chance", "sum", ("log_chance",)), Aggregate("start_chance", "sum", ("log_start", "start")))
_ROUNDING = 1e-12
"""Sums along equal episodes differ by less than this share of what they add up."""
_PRIOR_ROWS = 1.0
"""A state's actions are drawn towards those of all states as if by so many rows."""
_SEVERAL, _SPARSE, _DIGITS = 10, 20, 6
"""Rewards of a transition count as measured where at least 10 differ, one in 20 does, and they have over 6 digits."""
_DULL, _ELSEWHERE = 4.0, 1 / 8
"""A kind is dull that comes so many times as often as the median one, if no more of all copies are less likely."""
_NEAR, _WIDER = 1e-5, 10.0
"""Sums are near that differ by so much of their spread, or a hundredth of a gap; natural neighbours grow with that."""
_NEVER = 1e-9
"""The chance of a number that was measured to come again."""


@dataclass(frozen=True)
class Repeats:
    """How many of ``telling`` episodes repeat another; one of them, and the one that it repeats."""

    copies: int
    telling: int
    example: tuple[str, str] | None = None
    exact: bool = True
    """Whether the numbers are the same, or differ in the last digits."""

    @property
    def share(self) -> float:
        """Of the episodes that can tell; a few of them are taken for more, so that one copy alone says little."""
        return self.copies / max(self.telling, LEAST)


def make_marks(transitions: Transitions, seed: int = 0) -> Probes:
    """Columns over groups, and what to add up by episode."""
    cell = transition_cells(transitions)
    signature = np.random.default_rng([seed, 41]).integers(1, 1 << 24, size=int(cell.max(initial=0)) + 1)
    with np.errstate(divide="ignore"):
        start = np.log(transitions.start_law)
    columns = {
        "h_row": signature.astype(np.float64)[cell],
        "log_chance": _log_chance(transitions, cell),
        "log_start": np.where(np.isfinite(start), start, 0.0)[transitions.state],
    }
    return Probes(columns, (*CONTENT, *_CHANCE))


def _log_chance(t: Transitions, cell: IntArray) -> FloatArray:
    """log π̂(a|s) P̂(s′|s,a) of every group, π̂ by its own logger; that a recorder stopped is no chance."""
    logger, n_actions, n_states = t.logger, len(t.actions), t.n_states
    of_action = sum_by(logger * n_actions + t.action, t.rows)[logger * n_actions + t.action]
    prior = of_action / sum_by(logger, t.rows)[logger]
    in_state = np.unique(logger * n_states + t.state, return_inverse=True)[1]
    in_pair = np.unique(logger * t.n_pairs + t.pair, return_inverse=True)[1]
    taken, visits = sum_by(in_pair, t.rows)[in_pair], sum_by(in_state, t.rows)[in_state]
    policy = (taken + _PRIOR_ROWS * prior) / (visits + _PRIOR_ROWS)
    known = t.next_state != UNFOLLOWED
    of_pair = np.where(known, sum_by(t.pair, t.rows * known)[t.pair], sum_by(cell, t.rows)[cell])
    return np.asarray(np.log(policy * sum_by(cell, t.rows)[cell] / of_pair))


def repeats_of_counts(groups: GroupSums, transitions: Transitions, ordered: OrderedRows | None) -> Repeats:
    """From sums by episode with the marks; with the rows in the order of these, equal rewards are less likely, too."""
    chance = groups.column("chance") + groups.column("start_chance")
    if ordered is not None:
        ties = _log_ties(ordered, transition_cells(transitions))
        chance += sum_by(ordered.episodes.episode, ties, len(chance))
    most = np.maximum(np.abs(transitions.lowest), np.abs(transitions.highest)).max(initial=0.0)
    alike = _alike(groups, groups.column("leaving"), np.abs(groups.column("content")), most)
    best = np.full(len(alike), -np.inf)
    np.maximum.at(best, alike, chance)  # by the logger that is most likely to have written it
    unlikely = np.log(max(len(chance), 1)) + best[alike] < np.log(EXPECTED)
    return _repeats(groups, alike, _not_dull(alike, unlikely, best[alike]))


def _not_dull(alike: IntArray, unlikely: BoolArray, chance: FloatArray) -> BoolArray:
    """The unlikely episodes, less the likelier half of their kinds where it has the copies because it is dull."""
    some = np.flatnonzero(unlikely)
    kinds, first, kind, times = np.unique(alike[some], return_index=True, return_inverse=True, return_counts=True)
    if not np.any(times > 1):
        return unlikely
    rare = np.zeros(len(kinds), dtype=np.bool_)
    rare[np.argsort(chance[some][first], kind="stable")[: (len(kinds) + 1) // 2]] = True
    copies = float((times - 1).sum())
    if times.max() < _DULL * np.median(times) or float((times[rare] - 1).sum()) > _ELSEWHERE * copies:
        return unlikely
    result = np.zeros_like(unlikely)
    result[some[rare[kind]]] = True
    return result


def _log_ties(ordered: OrderedRows, cell: IntArray) -> FloatArray:
    """log p̂(r|s,a,s′) of every row: the share of its reward, or next to nothing where rewards are measured."""
    reward, mine = ordered.episodes.reward, cell[ordered.group]
    value, _ = number_tuples([reward])
    both, _ = number_tuples([mine, value])
    rows, equal = sum_by(mine, np.ones(len(mine))), sum_by(both, np.ones(len(both)))
    of_both = np.unique(both, return_index=True)[1]
    distinct = sum_by(mine[of_both], np.ones(len(of_both)), len(rows))
    elsewhere = float(np.sum(sum_by(value, np.ones(len(value))) ** 2) - np.sum(equal**2))
    between = max(float(len(reward) ** 2 - np.sum(rows**2)), 1.0)
    measured = ((distinct >= _SEVERAL) & (distinct >= rows / _SPARSE))[mine] & _many_digits(reward)
    return np.log(np.where(measured, max(elsewhere / between, _NEVER), equal[both] / rows[mine]))


def _many_digits(values: FloatArray) -> BoolArray:
    """Whether a number has more decimal digits than people write."""
    size = np.abs(values)
    with np.errstate(divide="ignore", invalid="ignore"):  # of a number too small for its power of ten: nothing is said
        scaled = np.where(size > 0, size / 10.0 ** np.floor(np.log10(size)), 0.0) * 10.0**_DIGITS
        return np.asarray(np.abs(scaled - np.round(scaled)) > 1e-3)


def repeats_of_rows(groups: GroupSums, sample: Rows) -> Repeats:
    """From sums by episode and a sample of the rows, where states are not counted."""
    size = groups.column("size")
    most = np.maximum(np.abs(groups.column("lowest")), np.abs(groups.column("highest"))).max(initial=0.0)
    alike = _alike(groups, groups.column("leaving"), MARKS * size, most, size)
    near = near_copies(groups, alike)
    if near is not None:
        return near
    if _all_differ(alike):
        return Repeats(0, len(alike))
    kind = _kind_of_rows(groups, sample, alike)
    again = _agreement(sample, kind)
    with np.errstate(divide="ignore"):
        chance = np.log(max(len(alike), 1)) + groups.column("rows") * np.log(again)
    unlikely = chance < np.log(EXPECTED)
    if again > 0:
        unlikely = _not_dull(alike, unlikely, groups.column("rows") * _log_agreement(sample, kind, len(alike))[alike])
    return _repeats(groups, alike, unlikely)


def _log_agreement(sample: Rows, kind: IntArray, n: int) -> FloatArray:
    """For every kind of episode the mean log of how often rows with the same state agree on all the rest."""
    state, _ = number_tuples(_columns(sample.observation))
    rest = (*_columns(sample.action), *_columns(sample.next_observation), sample.reward)
    whole, _ = number_tuples([state, *rest])
    share = np.bincount(whole)[whole] / np.bincount(state)[state]
    rows = sum_by(kind, np.ones(len(kind)), n)
    return np.divide(sum_by(kind, np.log(share), n), rows, out=np.zeros(n), where=rows > 0)


def near_copies(groups: GroupSums, alike: IntArray) -> Repeats | None:
    """Episodes that are copies but for the last digits; None where there are none, or exact copies besides.

    What is near in all sums of a few, each in units of its spread between episodes, is counted at one distance and at
    ten times that. Natural neighbours grow at least in proportion, which says how many of those within the first there
    may be; copies do not.
    """
    n, exact = len(alike), len(np.unique(alike))
    if n < LEAST or exact < n:
        return None
    distance = min(_NEAR, 0.01 / n)
    close, wide = (_near(groups, factor * distance) for factor in (1.0, _WIDER))
    copies, around = (n - len(np.unique(found)) for found in (close, wide))
    natural = (around - copies) / (_WIDER - 1.0)
    if copies - natural <= 2.0 * np.sqrt(natural) or copies <= natural:
        return None
    found = _copies(groups, close, np.arange(n))
    return replace(found, copies=int(np.ceil(copies - natural)), exact=False)


def _near(groups: GroupSums, distance: float) -> IntArray:
    """As :func:`_alike`, by sums whose slack is a share of how they spread between episodes of that many rows."""
    rows, columns = groups.column("rows"), []
    for name in ("content", "leaving", "arriving", "first", "earned", "paid"):
        values = groups.column(name)
        per_row = values / rows
        spread = np.median(np.abs(per_row - np.median(per_row)) * np.sqrt(rows))
        columns.append((values, distance * spread * np.sqrt(rows)))
    still = np.zeros(len(rows))
    return grouped_alike([(rows, still), (groups.column("ended"), still), *columns])


def _kind_of_rows(groups: GroupSums, sample: Rows, alike: IntArray) -> IntArray:
    """Of every row of the sample, the number of the episodes that are like its own."""
    assert groups.table is not None
    assert sample.episode is not None
    hashes = episode_hash(groups.table, EPISODE_KEYS)
    order = np.argsort(hashes, kind="stable")
    place = np.minimum(np.searchsorted(hashes[order], sample.episode), len(order) - 1)
    return alike[order[place]]


def _agreement(sample: Rows, kind: IntArray) -> float:
    """How often two rows with the same state agree on all the rest; 0 where no state comes in episodes that differ."""
    state, _ = number_tuples(_columns(sample.observation))
    rest = (*_columns(sample.action), *_columns(sample.next_observation), sample.reward)
    whole, _ = number_tuples([state, *rest])
    within, _ = number_tuples([state, kind])
    rows = len(state)
    same_state = _pairs(state)
    if same_state == _pairs(within):
        return 0.0
    return (_pairs(whole) - rows) / max(same_state - rows, 1.0)


def _pairs(code: IntArray) -> float:
    """Σ n² over the values."""
    return float(np.sum(np.bincount(code).astype(np.float64) ** 2))


def _columns(values: AnyArray) -> list[AnyArray]:
    columns = values.reshape(len(values), -1).T
    return [column.astype(str) if column.dtype.kind == "O" else column for column in columns]


def _alike(
    groups: GroupSums, states: FloatArray, size: FloatArray, most: float, rounding: FloatArray | float = 0.0
) -> IntArray:
    """For every episode the number of one that is like it, the same for all that are.

    ``size`` and ``most`` are what sums of states and of rewards add up.
    """
    rows, exact = groups.column("rows"), np.zeros(groups.n_groups)
    paid = rows * most
    return grouped_alike(
        [
            (groups.column("content"), _ROUNDING * size),
            (rows, exact),
            (groups.column("ended"), exact),
            (states, exact + _ROUNDING * np.asarray(rounding)),
            (groups.column("earned"), _ROUNDING * paid),
            (groups.column("paid"), _ROUNDING * MARKS * paid),
        ]
    )


def grouped_alike(columns: Sequence[tuple[FloatArray, FloatArray]]) -> IntArray:
    """Numbers for entries whose values are equal in all columns, up to the slack that stands beside each value.

    What is alone after some columns is not compared on the others.
    """
    n = len(columns[0][0])
    group, left = np.zeros(n, dtype=np.int64), np.arange(n)
    for values, slack in columns:
        order = left[np.lexsort((values[left], group[left]))]
        near = np.diff(values[order]) <= slack[order][1:]
        apart = (np.diff(group[order]) != 0) | ~near
        first = np.append(0, np.flatnonzero(apart) + 1)[: len(order)]
        size = np.diff(np.append(first, len(order)))
        group[order] = np.repeat(order[first], size)
        left = order[np.repeat(size > 1, size)]
    return group


def _repeats(groups: GroupSums, alike: IntArray, unlikely: BoolArray) -> Repeats:
    """Copies among the episodes that are not expected twice, or of all logs or those of a logger as a whole."""
    every = np.arange(len(alike))
    found = [_copies(groups, alike, np.flatnonzero(unlikely))]
    logger, n_loggers = (every, 0) if _all_differ(alike) else key_codes(groups.keyed_by(["policy_id"]).column(0))
    for some in (every, *(every[logger == j] for j in range(n_loggers))):
        times = common_divisor(np.unique(alike[some], return_counts=True)[1])
        if times > 1:
            whole = _copies(groups, alike, some)
            found.append(replace(whole, copies=len(some) - len(some) // times))
    return max(found, key=lambda repeats: repeats.share)


def common_divisor(numbers: IntArray) -> int:
    """The greatest common divisor of how often the kinds of episodes came, where it can be no chance; else 1."""
    times = int(np.gcd.reduce(numbers)) if len(numbers) >= KINDS else 1
    return times if (len(numbers) - 1) * np.log(times) > -np.log(CERTAIN) else 1


def _all_differ(alike: IntArray) -> bool:
    return bool(np.all(alike == np.arange(len(alike))))


def _copies(groups: GroupSums, alike: IntArray, some: IntArray) -> Repeats:
    """How many of some episodes come after one that is like them."""
    _, first, back = np.unique(alike[some], return_index=True, return_inverse=True)
    again = np.flatnonzero(first[back] != np.arange(len(some)))
    if len(again) == 0:
        return Repeats(0, len(some))
    one, other = some[first[back[again[0]]]], some[again[0]]
    return Repeats(len(again), len(some), (_name(groups, int(other)), _name(groups, int(one))))


def _name(groups: GroupSums, episode: int) -> str:
    source, logger, number = (groups.values(key)[episode] for key in EPISODE_KEYS)
    several = len(np.unique(groups.values("source"))) > 1
    return f"episode {number} of {logger}" + (f" in input {int(source) + 1}" if several else "")
