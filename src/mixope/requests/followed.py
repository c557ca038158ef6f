"""Counts of rows after which nobody knows what came, made counts of transitions.

The last row of an episode that the recorder cut tells a state, an action and a reward, and that the episode went on;
it does not tell where. That it was cut has nothing to do with what came of it, so that it belongs to the mean reward of
its pair, and to the rows that an end is a share of, and says nothing about the next states:

    r(s,a) = mean of r over all rows of (s,a),   P(end|s,a) = ends / all rows,
    P(s′|s,a) = (1 − P(end|s,a)) · rows to s′ / rows to any state.

To leave such rows out would be to keep a row because of what came of it: of the rows on which the recorder stopped,
those that ended the episode would stay. The same counts come about if each of them is dealt to the next states of its
pair, in the proportion of the rows that tell theirs. Whatever solves counts then needs no word of all this.

A pair that goes on nowhere in the logs is left where it is: beside ends, or where the horizon needs its reward and no
more. Elsewhere the target's share of it is not covered, as that of an action which was never logged.

Scores go the way back. A row whose next state is not known has the mean score of its pair's; and as the next states of
n rows stand for those of N, what they add to a score counts N/n times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.requests.transitions import ENDED, SUMS, UNFOLLOWED, Transitions, restrict


@dataclass(frozen=True)
class Followed:
    """Counts of transitions, and where they come from: ``kept`` are the first of the groups as they were logged.

    Of the logged group ``origin[k]`` the share ``share[k]`` was dealt to the group ``place[k]``.
    """

    logged: Transitions
    transitions: Transitions
    kept: IntArray
    origin: IntArray
    place: IntArray
    share: FloatArray

    @property
    def dealt(self) -> FloatArray:
        """The rows behind every share."""
        return np.asarray(self.logged.rows[self.origin] * self.share)

    def added_up(self, values: FloatArray) -> FloatArray:
        """Sums over the rows of the logged groups as sums over those of the transitions."""
        found = np.append(values[self.kept], np.zeros(self.transitions.n_groups - len(self.kept)))
        return found + sum_by(self.place, values[self.origin] * self.share, len(found))

    def scores_of_logged(self, table: FloatArray) -> FloatArray:
        """A score table of the transitions as one of the logged groups."""
        found = np.zeros((table.shape[1], self.logged.n_groups)).T
        for k, values in enumerate(table.T):
            if values.any():
                found[self.kept, k] = self._spread_out(values)[: len(self.kept)]
                found[:, k] += sum_by(self.origin, self.share * values[self.place], len(found))
        return found

    def _spread_out(self, values: FloatArray) -> FloatArray:
        """What next states add, as often as they stand for others; about the mean of the pair's rows that go on."""
        t = self.transitions
        alive = np.flatnonzero(t.next_state >= 0)
        own = np.unique(t.logger[alive] * t.n_pairs + t.pair[alive], return_inverse=True)[1]
        mean = sum_by(own, t.rows[alive] * values[alive]) / sum_by(own, t.rows[alive])
        told = np.append(self.logged.rows[self.kept], np.zeros(t.n_groups - len(self.kept)))
        every, known = sum_by(t.pair[alive], t.rows[alive], t.n_pairs), sum_by(t.pair[alive], told[alive], t.n_pairs)
        times = np.divide(every, known, out=np.ones(t.n_pairs), where=known > 0)
        result = values.copy()
        result[alive] = mean[own] + times[t.pair[alive]] * (values[alive] - mean[own])
        return result

    def sums_of_logged(self, values: FloatArray) -> FloatArray:
        """Sums over the rows of the transitions as sums over those of the logged groups, each row with its share."""
        t, found = self.transitions, np.zeros(self.logged.n_groups)
        found[self.kept] = values[: len(self.kept)] * self.logged.rows[self.kept] / t.rows[: len(self.kept)]
        return found + sum_by(self.origin, values[self.place] * self.dealt / t.rows[self.place], len(found))


def follow_up(logged: Transitions, *, to_the_last: bool) -> Followed | None:
    """The logged groups as counts of transitions; None where the next state of every row is known.

    ``to_the_last``: the rewards of pairs that go on nowhere are wanted, too.
    """
    open_ones = np.flatnonzero(logged.next_state == UNFOLLOWED)
    if not len(open_ones):
        return None
    kept = np.flatnonzero(logged.next_state != UNFOLLOWED)
    origin, state, share = _shares(logged, open_ones, to_the_last=to_the_last)
    place, new = _places(logged, kept, origin, state)
    found = Followed(logged, _grown(logged, kept, origin[new], state[new]), kept, origin, place, share)
    known = {name: values for name in SUMS if (values := getattr(logged, name)) is not None}
    sums: dict[str, Any] = {name: found.added_up(values) for name, values in known.items()}
    lowest, highest = found.transitions.lowest.copy(), found.transitions.highest.copy()
    np.minimum.at(lowest, place, logged.lowest[origin])
    np.maximum.at(highest, place, logged.highest[origin])
    whole = replace(found.transitions, lowest=lowest, highest=highest, **sums)
    return replace(found, transitions=whole)


def _shares(logged: Transitions, open_ones: IntArray, *, to_the_last: bool) -> tuple[IntArray, IntArray, FloatArray]:
    """Where the rows of some groups are taken to lead: the group, the next state, and its share of the group."""
    alive = np.flatnonzero(logged.next_state >= 0)
    cells, cell = np.unique(logged.pair[alive] * logged.n_states + logged.next_state[alive], return_inverse=True)
    rows, pair = sum_by(cell, logged.rows[alive], len(cells)), cells // logged.n_states
    ways = np.bincount(pair, minlength=logged.n_pairs)
    share = rows / sum_by(pair, rows, logged.n_pairs)[pair]
    first = np.cumsum(ways) - ways
    mine = logged.pair[open_ones]
    origin = np.repeat(open_ones, ways[mine])
    nth = np.arange(len(origin)) - np.repeat(np.cumsum(ways[mine]) - ways[mine], ways[mine])
    chosen = first[logged.pair[origin]] + nth
    ends = sum_by(logged.pair, logged.rows * (logged.next_state == ENDED), logged.n_pairs) > 0
    stays = open_ones[(ways[mine] == 0) & (ends[mine] | to_the_last)]
    return (
        np.concatenate([origin, stays]),
        np.concatenate([cells[chosen] % logged.n_states, logged.state[stays]]),
        np.concatenate([share[chosen], np.ones(len(stays))]),
    )


def _places(logged: Transitions, kept: IntArray, origin: IntArray, state: IntArray) -> tuple[IntArray, IntArray]:
    """The group of every share among those that are kept, or a new one behind them; and the first share of each."""
    size = logged.n_states + 1
    pair, logger = logged.pair, logged.logger
    known = (logger[kept] * logged.n_pairs + pair[kept]) * size + logged.next_state[kept] + 1
    asked = (logger[origin] * logged.n_pairs + pair[origin]) * size + state + 1
    codes, first, number = np.unique(np.concatenate([known, asked]), return_index=True, return_inverse=True)
    of_code = np.full(len(codes), -1, dtype=np.int64)
    of_code[number[: len(kept)]] = np.arange(len(kept))
    missing = np.flatnonzero(of_code < 0)
    of_code[missing] = len(kept) + np.arange(len(missing))
    return of_code[number[len(kept) :]], first[missing] - len(kept)


def _grown(logged: Transitions, kept: IntArray, like: IntArray, next_state: IntArray) -> Transitions:
    """Some groups as they were logged, and behind them others that are like these but for their next states."""
    found = restrict(logged, np.concatenate([kept, like]))
    return replace(found, next_state=np.concatenate([logged.next_state[kept], next_state]))
