"""Memory: what rows led to beyond their state and action, weighed by how much like the target's their past was.

The one-step solution takes the state for all that matters. Its residual, what a row earned and led to beyond its state
and action, has mean zero in every pair; if the state is not all, it has another mean where the past of the row was like
the target's. So the value is corrected to first order by residuals with weights over the last k rows,

    η_k = η_1 + Σ w δ / Σ w,      δ = r + t − q(s,a),      w = ω(s₋ₖ₊₁) W(the k rows),   ω(s) = d(s) / n(s)

n(s) being the windows that begin in s and W the weights of :mod:`mixope.estimators.counts.windows`. For k = 1 the sum
is zero: nothing changes. If the state is all, its mean is zero for every k, and η_k has the summand w δ: no error is
added twice. The target has been under way for less than k steps, too: of rows with fewer rows before them the whole
past counts, from the start law. With c = 1 − γ for the discounted value, 1 for the total of an episode, and how often a
step ends an episode for the average,

    γᵏ⁻¹ Σ_s d(s) E[W_k δ_k | s]  +  Σ_{j<k} c γʲ⁻¹ E_μ₀[W_j δ_j],                each mean self-normalised;

for a horizon of T steps d(s) δ stands for Σ_t d_t(s) δ_t / T, with δ_t the residual of the value of the steps that are
left. A k that reaches over whole episodes needs no state: it is step-wise weighted doubly robust importance sampling
(Jiang and Li 2016; Thomas and Brunskill 2016).

Scores. A row enters with the weight w of the windows that end with it, and through the mean q of its pair. With p_k
the weight of all such windows at a pair (for ``bch-pooled``, at a state), relative to d,

    score = w (δ − mean) + (1 − p_k/d) · (its score in η_1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from mixope.base.arrays import FloatArray, IntArray, sum_by
from mixope.base.errors import must_fit
from mixope.estimators.counts.flow import Flow
from mixope.estimators.counts.occupancy import Occupancy
from mixope.estimators.counts.windows import Paths, Windows
from mixope.estimators.state_ratio import left_out, pair_baseline, state_baseline
from mixope.requests.problem import pair_probabilities
from mixope.requests.scores import ScoreTable
from mixope.requests.trajectories import OrderedRows
from mixope.requests.transitions import BASIS

_AT_A_TIME = 1 << 22
"""Of a horizon: windows times steps that are looked at together."""


@dataclass(frozen=True)
class Rung:
    """The value with so many rows remembered, its scores and weights by row.

    ``effective`` is how many episodes the windows are worth: (Σ w)² / Σ w² of what they weigh by episode.
    """

    memory: int
    value: float
    score: FloatArray
    weight: FloatArray
    effective: float


@dataclass(frozen=True)
class Remembered:
    """A one-step solution laid along the rows: their paths, δ, its n/(n−1), the pair (or state) in which its mean is 0.

    ``weight`` is what every row weighs in η_1 and ``score`` how it is scored there, but for the part of the starts.
    """

    flow: Flow
    occupancy: Occupancy
    value: float
    paths: Paths
    group: IntArray
    reward: FloatArray
    residual: FloatArray
    own: FloatArray
    cell: IntArray
    weight: FloatArray
    score: FloatArray
    of_starts: FloatArray

    @property
    def longest(self) -> int:
        """The most rows that any window has."""
        return int(self.paths.length.max(initial=1))

    def rung(self, memory: int) -> Rung:
        """η_k."""
        if memory == 1:  # also where windows are weighed by other probabilities than the chain
            return self._made(1, self.value, self.score + self.of_starts, self.weight)
        n, value = self.paths.n_rows, self.value
        score, weight = np.zeros(n), np.zeros(n)
        for windows, mass, law, delta in self._means(memory):
            w = _weights(windows, self.paths.state[windows.begin], mass, law)
            mean = float(w @ delta) / mass
            value += mass * mean
            score += sum_by(windows.last, w * (self.own[windows.last] * delta - mean), n)
            weight += sum_by(windows.last[windows.whole], w[windows.whole], n)
        there, usual = sum_by(self.cell, weight), sum_by(self.cell, self.weight)
        share = np.divide(there, usual, out=np.zeros_like(there), where=usual > 0)
        score += (1.0 - share[self.cell]) * self.score + self.of_starts
        return self._made(memory, value, score, weight)

    def _made(self, memory: int, value: float, score: FloatArray, weight: FloatArray) -> Rung:
        by_episode = sum_by(self.paths.episode, weight)
        squares = float(by_episode @ by_episode)
        return Rung(memory, value, score, weight, float(by_episode.sum()) ** 2 / squares if squares > 0 else 0.0)

    def _means(self, memory: int) -> Iterator[tuple[Windows, float, FloatArray, FloatArray]]:
        """Windows, how much their mean counts, the law of where they begin, and the residual of their last rows."""
        paths, estimand = self.paths, self.flow.problem.estimand
        everywhere = np.arange(paths.n_rows)
        if estimand.horizon is not None:
            yield from self._means_by_step(memory, estimand.horizon)
            return
        law, gamma = self.occupancy.law, estimand.discount
        windows = paths.windows(everywhere, memory)
        yield windows, gamma ** (memory - 1) * float(law.sum()), law, self._last(windows)
        begun = self._begun
        for rows in range(1, memory if begun > 0 else 1):
            windows = paths.windows(paths.first, rows)
            yield windows, begun * gamma ** (rows - 1), self._starts, self._last(windows)

    def _last(self, windows: Windows) -> FloatArray:
        return np.where(windows.whole, self.residual[windows.last], 0.0)

    def _means_by_step(self, memory: int, horizon: int) -> Iterator[tuple[Windows, float, FloatArray, FloatArray]]:
        """Of windows that may begin at any step from which they run their length, and of those from the start."""
        paths, steps = self.paths, self._steps
        if horizon >= memory:
            laws = steps.laws[: horizon - memory + 1]
            law = laws.sum(axis=0) / horizon
            windows = paths.windows(np.arange(paths.n_rows), memory)
            yield windows, float(law.sum()), law, self._last_by_step(windows, laws, memory)
        for rows in range(1, min(memory, horizon + 1)):
            windows = paths.windows(paths.first, rows)
            begin = np.ones((1, self.flow.rows.n_states))
            yield windows, 1.0 / horizon, self._starts, self._last_by_step(windows, begin, rows)

    def _last_by_step(self, windows: Windows, laws: FloatArray, rows: int) -> FloatArray:
        """Σ_t d_t(s) δ_{t+rows−1} / Σ_t d_t(s), with s where a window begins and δ of its last row."""
        steps, found = self._steps, np.zeros(len(windows))
        whole = np.flatnonzero(windows.whole)
        for low in range(0, len(whole), max(_AT_A_TIME // len(laws), 1)):
            some = whole[low : low + max(_AT_A_TIME // len(laws), 1)]
            by_step = laws[:, self.paths.state[windows.begin[some]]]
            mass = by_step.sum(axis=0)
            share = np.divide(by_step, mass, out=np.zeros_like(by_step), where=mass > 0)
            last = windows.last[some]
            found[some] = self.reward[last] - steps.reward[steps.cell[self.group[last]]]
            found[some] += np.sum(share * steps.onward(self.group[last], rows, len(laws)), axis=0)
        return found

    @cached_property
    def _starts(self) -> FloatArray:
        law = np.zeros(self.flow.rows.n_states)
        law[self.flow.states] = self.flow.start
        return law

    @cached_property
    def _begun(self) -> float:
        """How often the target starts: per step, or in all."""
        flow, estimand = self.flow, self.flow.problem.estimand
        if not estimand.restarts:
            return estimand.scale
        return float(_visits(flow, self.occupancy)[flow.rows.next_state < 0].sum()) if flow.restarts else 0.0

    @cached_property
    def _steps(self) -> _Steps:
        return _Steps.of(self.flow)


def _weights(windows: Windows, begin: IntArray, mass: float, law: FloatArray) -> FloatArray:
    """w, whose sum is the mass; nothing where the target does what no window shows."""
    there = sum_by(begin, windows.seen, len(law))
    omega = np.divide(law, there, out=np.zeros_like(law), where=there > 0)
    w = omega[begin] * windows.seen * windows.weight
    total = float(w.sum())
    return np.asarray(w * (mass / total)) if total > 0 else np.zeros_like(w)


def _visits(flow: Flow, occupancy: Occupancy) -> FloatArray:
    """d(s) of every group's state times its share there: how often the target has such a transition."""
    count = flow.state_count
    omega = np.divide(occupancy.law, count, out=np.zeros_like(count), where=count > 0)
    return np.asarray(omega[flow.rows.state] * flow.ratio)


@dataclass(frozen=True)
class _Steps:
    """d_t and V_t of a horizon, by all states (the last: an end), and the means of cells: of rewards, of V_t where rows
    lead. ``cell`` and ``next_state`` are by logged group; the latter is −1 where nobody knows it."""

    laws: FloatArray
    value: FloatArray
    mean_value: FloatArray
    reward: FloatArray
    cell: IntArray
    next_state: IntArray

    @classmethod
    def of(cls, flow: Flow) -> _Steps:
        horizon, rows, n = flow.problem.estimand.horizon, flow.rows, flow.rows.n_states
        assert horizon is not None
        of_cell = rows.pair if flow.fitted else rows.state
        n_cells = int(of_cell.max()) + 1
        must_fit("what follows every pair at every step of the horizon", (horizon, n_cells), "Use a discount instead")
        chain, reward = flow.chain(), flow.state_reward()
        laws, value = np.zeros((horizon, n)), np.zeros((horizon + 1, n + 1))
        laws[:, flow.states] = chain.laws(flow.start, horizon)
        for t in range(horizon - 1, -1, -1):
            value[t, flow.states] = reward + chain.transition @ value[t + 1, flow.states]
        counts, earned = (flow.count, flow.weight * rows.reward) if flow.fitted else (flow.ratio, flow.ratio_reward)
        onto = np.where(rows.next_state < 0, n, rows.next_state)
        total = sum_by(of_cell, counts, n_cells)
        per = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        leads = sparse.csr_matrix((counts * per[of_cell], (of_cell, onto)), shape=(n_cells, n + 1))
        mean_value, mean_reward = np.asarray((leads @ value.T).T), sum_by(of_cell, earned, n_cells) * per
        return cls(laws, value, mean_value, mean_reward, _cells(flow, of_cell), _next_states(flow, onto))

    def onward(self, group: IntArray, first: int, steps: int) -> FloatArray:
        """V_t of where groups lead less its mean over their cells, for so many t: shape (steps, groups)."""
        there = self.next_state[group]
        known = self.value[first : first + steps, np.maximum(there, 0)]
        return np.where(there < 0, 0.0, known - self.mean_value[first : first + steps, self.cell[group]])


def _cells(flow: Flow, cell: IntArray) -> IntArray:
    """By logged group, the cell of its groups in the flow; 0 where none is there."""
    groups, kept = _logged_groups(flow)
    found, followed = np.zeros(flow.whole.logged.n_groups, dtype=np.int64), flow.whole.followed
    found[groups] = cell[kept]
    if followed is not None:
        place = np.full(flow.whole.transitions.n_groups, -1)
        place[flow.groups] = np.arange(len(flow.groups))
        there = place[followed.place]
        found[followed.origin[there >= 0]] = cell[there[there >= 0]]
    return found


def _next_states(flow: Flow, onto: IntArray) -> IntArray:
    """By logged group, where it leads; −1 where nobody knows."""
    groups, kept = _logged_groups(flow)
    found = np.full(flow.whole.logged.n_groups, -1)
    found[groups] = onto[kept]
    return found


def _logged_groups(flow: Flow) -> tuple[IntArray, IntArray]:
    """The logged groups that are in the flow as they are, and their places there."""
    followed = flow.whole.followed
    if followed is None:
        return flow.groups, np.arange(len(flow.groups))
    mine = np.flatnonzero(flow.groups < len(followed.kept))
    return followed.kept[flow.groups[mine]], mine


def _of_logged(flow: Flow, values: FloatArray) -> FloatArray:
    """By logged group, from groups of the flow; what was dealt to several next states has their mean."""
    groups, kept = _logged_groups(flow)
    found = np.zeros(flow.whole.logged.n_groups)
    found[groups] = values[kept]
    followed = flow.whole.followed
    if followed is None:
        return found
    everywhere = np.zeros(flow.whole.transitions.n_groups)
    everywhere[flow.groups] = values
    return found + sum_by(followed.origin, followed.share * everywhere[followed.place], len(found))


def lay(flow: Flow, occupancy: Occupancy, value: float, table: FloatArray, ordered: OrderedRows) -> Remembered:
    """The solution of a flow along rows in the order of their keys; ``table`` are its scores by logged group."""
    rows, group, episodes = flow.whole.logged, ordered.group, ordered.episodes
    there = _of_logged(flow, np.ones(flow.rows.n_groups))
    part = np.divide(1.0, there, out=np.zeros_like(there), where=there > 0)

    def laid(values: FloatArray) -> FloatArray:
        return np.asarray((_of_logged(flow, values) * part)[group])

    baseline = (pair_baseline if flow.fitted else state_baseline)(flow, occupancy.tail)
    kept = there[group] > 0
    residual = np.where(kept, episodes.reward + laid(occupancy.tail - baseline), 0.0)
    own = (
        left_out(sum_by(flow.rows.pair, flow.rows.rows))[flow.rows.pair] if flow.fitted else np.ones(flow.rows.n_groups)
    )
    starts = np.zeros_like(table)
    starts[:, BASIS.index("starts")] = table[:, BASIS.index("starts")]
    return Remembered(
        flow,
        occupancy,
        value,
        _paths(flow, ordered, part),
        group,
        episodes.reward,
        residual,
        laid(own),
        (rows.pair if flow.fitted else rows.state)[group],
        laid(_visits(flow, occupancy) / flow.rows.rows),
        ordered.scores(ScoreTable(table - starts)),
        ordered.scores(ScoreTable(starts)),
    )


def _paths(flow: Flow, ordered: OrderedRows, part: FloatArray) -> Paths:
    """What rows weigh in windows: by their own propensities, else by all loggers, else by the one there is."""
    logged, group, rows = flow.whole.logged, ordered.group, flow.rows
    raw = flow.factor[rows.state] * flow.problem.pair_target[rows.pair]
    unit = raw if flow.by_row else flow.ratio / rows.rows
    mixture, loggers = _counted(flow), None
    own = flow.by_row or (flow.fitted and has_propensities(flow))
    if own and not flow.by_row:
        unit = unit * mixture
    ratio = _of_logged(flow, unit)[group]
    if own:
        ratio = np.divide(ratio, ordered.propensity, out=np.zeros_like(ratio), where=ordered.propensity > 0)
    elif flow.fitted and len(logged.loggers) > 1:
        must_fit("the weights of every logger along all rows", (len(logged.loggers), len(group)), "Pool the loggers")
        laws = [_law(flow, j, mixture) for j in range(len(logged.loggers))]
        loggers = np.stack([(_of_logged(flow, law / mixture) * part)[group] for law in laws])
    data = ordered.episodes
    return Paths(logged.state[group], ratio, data.length, data.terminated, logged.logger[group[data.first]], loggers)


def has_propensities(flow: Flow) -> bool:
    """Whether every row says how likely its action was."""
    inverse = flow.whole.logged.inverse
    return inverse is not None and bool(np.isfinite(inverse).all())


def _counted(flow: Flow, logger: int | None = None) -> FloatArray:
    """How often a logger, or all of them, did in a group's state what was done there; NaN where it never was there."""
    rows = flow.rows
    mine = rows.rows if logger is None else np.where(rows.logger == logger, rows.rows, 0.0)
    pairs, states = sum_by(rows.pair, mine), sum_by(rows.state, mine)
    with np.errstate(invalid="ignore"):
        return np.asarray(pairs[rows.pair] / states[rows.state])


def _law(flow: Flow, logger: int, mixture: FloatArray) -> FloatArray:
    """π_l of every group: known, or counted; where it never was, as the mixture has it."""
    label = flow.rows.loggers[logger]
    if label in flow.whole.loggers:
        return pair_probabilities(flow.whole.loggers[label], flow.rows, f"logger {label!r}")[flow.rows.pair]
    law = _counted(flow, logger)
    return np.where(np.isnan(law), mixture, law)
