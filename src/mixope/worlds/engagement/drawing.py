"""Tests drawn from a world: a row per user and day, as Arrow tables, a block of users at a time.

Each block has random numbers of its own, so a table in memory and one that is written in pieces have the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from scipy import sparse

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.base.errors import must_fit
from mixope.worlds.engagement.designs import Choices, Design, check_whole
from mixope.worlds.engagement.settings import world_of
from mixope.worlds.engagement.world import Kind, World
from mixope.worlds.simulation import laws

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 20
"""Rows that are drawn at once."""


def draw(
    world: World | str,
    users: int = 1000,
    days: int = 14,
    *,
    seed: int,
    metrics: Sequence[str] = ("revenue",),
    hidden: str | Sequence[str] = (),
    **choices: Unpack[Choices],
) -> pa.Table:
    """One test: a row per user and day on which the user was there, sorted by user and day.

    Columns: user, day, variant, the state columns that are recorded (as they are before the day's move), the metrics,
    and ``exposed`` where the exposure is below 1. The choices are those of :class:`~.designs.Design`: ``arms``,
    ``stagger``, ``exposure``, ``switchback``, ``rollout``.
    """
    import pyarrow as pa

    source = source_of(world, Design(users, days, **choices), seed, metrics, hidden)
    columns = 3 + len(source.world.recorded) + len(source.metrics)
    must_fit("this test", (users * days, columns), "Write it in pieces with engagement.write(…).", bytes_each=4)
    return pa.Table.from_batches(list(source.batches()))


@dataclass(frozen=True, eq=False)
class Lives:
    """What some users lived through, each of shape (users, days).

    ``state`` is that at the beginning of a day, ``arm`` the place of the arm among those of the world, ``exposed``
    whether it was really lived (else the control was), and ``present`` whether the user had entered and was there.
    """

    state: IntArray
    arm: IntArray
    exposed: BoolArray
    present: BoolArray


def source_of(
    world: World | str,
    design: Design,
    seed: int,
    metrics: Sequence[str] = ("revenue",),
    hidden: str | Sequence[str] = (),
) -> SimulatedTest:
    """Where the rows of such a test come from."""
    check_whole("seed", seed, 0)
    known, named = world_of(world).hiding(hidden), (metrics,) if isinstance(metrics, str) else tuple(metrics)
    for name in design.arms:
        known.arm(name)
    for name in named:
        known.metric(name)
    return SimulatedTest(known, design, named, seed)


@dataclass(frozen=True, eq=False)
class SimulatedTest:
    """A test that is ready to be drawn."""

    world: World
    design: Design
    metrics: tuple[str, ...]
    seed: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, some users at a time."""
        import pyarrow as pa

        users, move = self.design.users, _mover(self.world.transition)
        size = max(1, BLOCK // self.design.days)
        first, *rest = np.random.SeedSequence(self.seed).spawn(1 + -(-users // size))
        entry, path = self.design.dealt()
        shuffled = np.random.default_rng(first).permutation(users)
        for block, sequence in enumerate(rest):
            chosen = shuffled[block * size : (block + 1) * size]
            generator = np.random.default_rng(sequence)
            lives = self._live(move, entry[chosen], path[chosen], generator)
            yield pa.RecordBatch.from_pydict(self._columns(lives, block * size, generator))

    def _live(self, move: Move, entry: IntArray, path: IntArray, generator: np.random.Generator) -> Lives:
        """Days one after the other, for all these users at once."""
        days, world = self.design.days, self.world
        arms = np.array([world.arm(name) for name in self.design.arms])
        arm = arms[self.design.paths()[path]]
        exposed = arm > 0
        if self.design.exposure < 1:
            exposed &= generator.random(arm.shape) < self.design.exposure
        row, present = np.where(exposed, arm, 0) * world.n_states, np.arange(days) >= entry[:, None]
        state = np.empty(arm.shape, dtype=np.int64)
        now = _mover(world.start[None])(entry % len(world.start), generator.random(len(entry)))
        for day in range(days):
            state[:, day] = now
            moved = move(row[:, day] + now, generator.random(len(now)))
            now = np.where(present[:, day], moved, now)
        return Lives(state, arm, exposed, present & world.here[state])

    def _columns(self, lives: Lives, first: int, generator: np.random.Generator) -> dict[str, Any]:
        """The table's columns of users ``first`` and on."""
        world, here = self.world, lives.present
        users, days = here.shape
        user, day = np.indices((users, days), dtype=np.int32)
        state, arm, exposed = lives.state[here], lives.arm[here], lives.exposed[here]
        columns: dict[str, Any] = {"user": user[here] + np.int32(first), "day": day[here]}
        columns["variant"] = _words(np.array(world.arms), arm)
        columns |= {name: _words(values, state) for name, values in world.recorded.items()}
        cell = np.where(exposed, arm, 0) * world.n_states + state
        for name in self.metrics:
            metric = world.metric(name)
            columns[name] = SCATTER[metric.kind](metric.mean.ravel()[cell], generator)
        return {**columns, "exposed": exposed} if self.design.exposure < 1 else columns


Move = Callable[[IntArray, FloatArray], IntArray]


def _mover(tables: FloatArray) -> Move:
    """Draws the next state, given rows of a stack of matrices (…, S) laid on top of each other, and uniforms."""
    moves = sparse.csr_array(tables.reshape(-1, tables.shape[-1]))
    drawn, following = laws(moves.data, moves.indptr.astype(np.int64)), moves.indices.astype(np.int64)
    return lambda rows, uniforms: following[drawn.draw(rows, uniforms)]


def _words(values: AnyArray, place: IntArray) -> Any:
    """The values at some places; words as codes and a dictionary, so that no word is written twice."""
    import pyarrow as pa

    if values.dtype.kind not in "UO":
        return values[place]
    words, code = np.unique(values, return_inverse=True)
    return pa.DictionaryArray.from_arrays(code.astype(np.int8)[place], pa.array(words.tolist()))


def _amount(mean: FloatArray, generator: np.random.Generator) -> FloatArray:
    """With probability m uniform on (0, 2), else 0; given u < m, 2u/m is uniform."""
    uniform = generator.random(len(mean))
    return np.asarray(np.divide(2 * uniform, mean, out=np.zeros(len(mean)), where=uniform < mean))


def _count(mean: FloatArray, generator: np.random.Generator) -> AnyArray:
    return generator.poisson(mean).astype(np.int32)


def _event(mean: FloatArray, generator: np.random.Generator) -> AnyArray:
    return (generator.random(len(mean)) < mean).astype(np.int8)


SCATTER: Mapping[Kind, Callable[[FloatArray, np.random.Generator], AnyArray]] = {
    "amount": _amount,
    "count": _count,
    "event": _event,
}
