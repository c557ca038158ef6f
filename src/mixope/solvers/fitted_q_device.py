"""Fitted Q evaluation on a GPU: the algorithm of :mod:`mixope.solvers.fitted_q` in JAX, all networks at once.

    processor    draws rows, clocks and pairs ahead for the next renewal, while the device works on the last one
    device       keeps the rows; takes those that were drawn, sets slope and level right, and makes the steps

Draws are those of the other trainer, in the same order, in single precision with full products (no
TF32), so that both find the same networks up to rounding. Sums are made in a fixed order, by the same kernels every
time: on one device the same seed gives the same bits. What is dear to compile, the steps, does not depend on how many
rows there are, and is compiled once for all targets and logs of one shape.

Importing this module imports JAX: it is for those who have found a device (:mod:`mixope.solvers.devices`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.processes import reporting
from mixope.solvers.fitted_q import (
    STEEPEST,
    Fitted,
    FittedQSettings,
    FittedRows,
    RenewalRows,
    Tick,
    TrainingDraws,
    Units,
    falling,
)
from mixope.solvers.networks import EPSILON

_OPTIONS = {"xla_gpu_deterministic_ops": True}
"""Kernels are chosen by rule, not by which was quickest today."""

DeviceFailure: type[Exception] = getattr(jax.errors, "JaxRuntimeError", RuntimeError)
"""What JAX raises where the device cannot go on, such as for want of memory."""
Parameters = tuple[Any, ...]
"""W₁, b₁, W₂, b₂, w, c, of all networks together or, under ``vmap``, of one."""


class DeviceRows(NamedTuple):
    """The rows, on the device."""

    inputs: Any
    ahead: Any
    shares: Any
    reward: Any
    going: Any
    horizon: Any


class Taken(NamedTuple):
    """The rows that were drawn: pairs, the pairs ahead of them with their shares, r, g, and whether they end."""

    x: Any
    ahead: Any
    shares: Any
    reward: Any
    going: Any
    ended: Any


class TrainingState(NamedTuple):
    """Networks on their way: parameters, Adam's two means, and the mean of the last steps."""

    parameters: Parameters
    mean: Parameters
    square: Parameters
    averaged: Parameters


class Step(NamedTuple):
    """What steps are made with: Adam's size and correction, what decay leaves, and the weight in the average."""

    size: Any
    correction: Any
    kept: Any
    share: Any


class Form(NamedTuple):
    """What decides which programme is compiled, besides the sizes of arrays."""

    batch: int
    timed: bool
    average: bool
    even: bool


def fit_networks_on(
    device: Any,
    rows: FittedRows,
    weights: FloatArray,
    settings: FittedQSettings,
    seed: int,
    tick: bool | Tick | None = False,
) -> Fitted:
    """:func:`mixope.solvers.fitted_q.fit_networks` on a device of JAX; ``tick`` is told of the renewals."""
    units, settings = Units.of(rows), settings.for_rows(len(rows))
    inside = units.inside(rows)
    trainer = _Trainer(device, inside, Form(settings.batch, rows.horizon is not None, rows.average, rows.even))
    draws = [TrainingDraws.of(inside, weights, settings, seed, number) for number in range(len(weights))]
    with reporting(tick, "learning the value") as report:
        averaged = trainer.train(draws, settings, report)
    found = [[np.asarray(p[k], dtype=np.float64) for p in averaged] for k in range(len(weights))]
    averages = _weighted(trainer.residuals(averaged), weights) if rows.average else []
    return units.fitted(rows, found, averages, str(device.device_kind))


def _weighted(residuals: FloatArray, weights: FloatArray) -> list[float]:
    """η of every network: the mean residual over its rows."""
    return [float(w @ off / w.sum()) for w, off in zip(weights, residuals, strict=True)]


class _Trainer:
    """Rows on a device, and the programmes that run there."""

    def __init__(self, device: Any, rows: FittedRows, form: Form) -> None:
        self.device, self.form = device, form
        arrays = (rows.inputs, rows.ahead, rows.shares, rows.reward, rows.going, np.float32(rows.horizon or 1))
        self.held = self._put(DeviceRows(*map(_single, arrays)))
        self.bounds = self._put((np.float32(rows.low), np.float32(rows.high)))
        self.ends = bool((rows.going == 0.0).any())
        self.starts = self._put((_single(rows.starts), _single(rows.start_shares))) if rows.average else None

    def train(
        self, draws: Sequence[TrainingDraws], settings: FittedQSettings, report: Callable[[int, int], None] | None
    ) -> Parameters:
        """The mean of the parameters of the last steps, of every network."""
        begin = self._put(tuple(_single(np.stack(p)) for p in zip(*(each.network() for each in draws), strict=True)))
        zeros = tuple(map(jnp.zeros_like, begin))
        state, drawn = TrainingState(begin, zeros, zeros, zeros), _stacked([each.renewal() for each in draws])
        for number, schedule in enumerate(_schedule(settings), start=1):
            taken = self._run(_take, self.held, self._put(drawn))
            state = self._run(_renew, state, taken, self._first(state.parameters), self.bounds, self._put(schedule))
            if number < settings.renewals:
                drawn = _stacked([each.renewal() for each in draws])  # while the device works
            jax.block_until_ready(state)
            if report:
                report(number, settings.renewals)
        return state.averaged

    def residuals(self, parameters: Parameters) -> FloatArray:
        """r + V(s′) − q(s,a) of all rows, for every network."""
        found = self._run(_residuals, parameters, self.held, self._first(parameters))
        return np.asarray(found, dtype=np.float64)

    def _first(self, parameters: Parameters) -> Any:
        """The mean of V over the starts, to which an end leads where the question is the average."""
        if self.starts is None or not self.ends:
            return self._put(np.zeros(len(parameters[0]), dtype=np.float32))
        return self._run(_at_starts, parameters, *self.starts)

    def _put(self, arrays: Any) -> Any:
        return jax.device_put(arrays, self.device)

    def _run(self, programme: Callable[..., Any], *arguments: Any) -> Any:
        """Compiled for the shapes of the arguments, once."""
        place = jax.sharding.SingleDeviceSharding(self.device)
        shapes = jax.tree_util.tree_map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place), arguments)
        return _compiled(programme, self.form, shapes)(*arguments)


@lru_cache(maxsize=32)
def _compiled(programme: Callable[..., Any], form: Form, shapes: tuple[Any, ...]) -> Any:
    with jax.default_matmul_precision("highest"):
        return jax.jit(partial(programme, form)).lower(*shapes).compile(compiler_options=_OPTIONS)


def _single(values: Any) -> AnyArray:
    return np.asarray(values, dtype=np.float32)


def _stacked(drawn: Sequence[RenewalRows]) -> tuple[AnyArray, ...]:
    """The draws of all networks, (networks, n); the first pair ahead where all are looked at."""
    chosen = np.stack([each.chosen for each in drawn]).astype(np.int32)
    one = np.stack([np.zeros(1) if each.one is None else each.one for each in drawn]).astype(np.int32)
    return chosen, _single(np.stack([each.clock for each in drawn])), one


def _schedule(settings: FittedQSettings) -> list[Step]:
    """The steps of every renewal, as the other trainer makes them."""
    total, since = settings.renewals * settings.steps, settings.averaged_since
    done = np.arange(total)
    rate = settings.rate * np.array([falling(k / total) for k in done])
    counted = done - since + 1.0
    columns = (
        rate / (1.0 - 0.9 ** (done + 1.0)),
        1.0 - 0.999 ** (done + 1.0),
        1.0 - rate * settings.decay,
        np.where(counted > 0, 1.0 / np.maximum(counted, 1.0), 0.0),
    )
    cut = [_single(column).reshape(settings.renewals, settings.steps) for column in columns]
    return [Step(*(column[k] for column in cut)) for k in range(settings.renewals)]


# --- programmes: what is compiled


def _take(form: Form, held: DeviceRows, drawn: tuple[Any, ...]) -> Taken:
    """The rows that every network drew."""
    return jax.vmap(partial(_take_one, form, held))(*drawn)  # type: ignore[no-any-return]


def _take_one(form: Form, held: DeviceRows, chosen: Any, clock: Any, one: Any) -> Taken:
    reward, going = held.reward[chosen], held.going[chosen]
    ended, x = going == 0.0, held.inputs[chosen]
    if form.even:
        ahead, shares = held.ahead[chosen, one][None], held.shares[chosen, 0][None] * held.ahead.shape[1]
    else:
        ahead, shares = jnp.swapaxes(held.ahead[chosen], 0, 1), held.shares[chosen].T
    if form.timed:
        x, ahead = _with_clock(x, clock, held.horizon), _with_clock(ahead, clock - 1.0, held.horizon)
        reward, going = reward / clock, going * (clock - 1.0) / clock
    if form.average:
        going = jnp.ones_like(going)
    return Taken(x, ahead, shares, reward, going, ended)


def _with_clock(pairs: Any, left: Any, horizon: Any) -> Any:
    """Pairs with the share of the steps that are left as one more column."""
    column = jnp.broadcast_to(left / horizon * 2.0 - 1.0, pairs.shape[:-1])
    return jnp.concatenate([pairs, column[..., None]], axis=-1)


def _renew(
    form: Form, state: TrainingState, taken: Taken, first: Any, bounds: tuple[Any, Any], schedule: Step
) -> TrainingState:
    """A renewal of all networks, and the steps up to the next one."""
    along = jax.vmap(partial(_renew_one, form), in_axes=(0, 0, 0, None, None))
    return along(state, taken, first, bounds, schedule)  # type: ignore[no-any-return]


def _renew_one(
    form: Form, state: TrainingState, taken: Taken, first: Any, bounds: tuple[Any, Any], schedule: Step
) -> TrainingState:
    low, high = bounds
    q, v = _valued(state.parameters, taken.x), _expected(state.parameters, taken.ahead, taken.shares)
    if form.average:
        v = jnp.where(taken.ended, first, v)
    slope, level = _rescaled(form, taken, q, v, bounds)
    shift = -slope * _mean(form, q) if form.average else level
    *rest, last, constant = state.parameters
    state = state._replace(parameters=(*rest, last * slope, constant * slope + shift))
    goals = taken.reward + taken.going * jnp.clip(v * slope + shift, low, high) - (level if form.average else 0.0)
    batches = taken.x.reshape(-1, form.batch, taken.x.shape[-1]), goals.reshape(-1, form.batch)
    return jax.lax.scan(_step, state, (schedule, *batches))[0]  # type: ignore[no-any-return]


def _rescaled(form: Form, taken: Taken, q: Any, v: Any, bounds: tuple[Any, Any]) -> tuple[Any, Any]:
    """a and c such that a q + c has Bellman residuals of mean zero, and uncorrelated with q as far as a allows."""
    low, high = bounds
    mean = partial(_mean, form)
    inside = (v > low) & (v < high)
    on = jnp.where(inside, taken.going, 0.0)
    right = taken.reward + jnp.where(inside, 0.0, taken.going * jnp.clip(v, low, high))
    centred, rise, off = q - mean(q), jnp.ones_like(q) if form.average else 1.0 - on, q - on * v
    (a, b), (c, d) = (mean(off), mean(rise)), (mean(centred * off), mean(centred * rise))
    determinant = a * d - b * c
    slope = (mean(right) * d - mean(centred * right) * b) / jnp.where(determinant == 0.0, 1.0, determinant)
    slope = jnp.clip(jnp.where(determinant == 0.0, 1.0, slope), 1.0 / STEEPEST, STEEPEST)
    return slope, (mean(right) - slope * a) / jnp.maximum(b, 1e-6)


def _mean(form: Form, values: Any) -> Any:
    """In two stages, which loses less to rounding."""
    return values.reshape(-1, form.batch).mean(axis=1).mean()


def _step(state: TrainingState, given: tuple[Step, Any, Any]) -> tuple[TrainingState, None]:
    """One step of Adam; weights, not biases, decay."""
    step, x, y = given
    found = jax.grad(_half_square)(state.parameters, x, y)
    moved = [
        _moved(step, k % 2 == 0, *each)
        for k, each in enumerate(zip(state.parameters, state.mean, state.square, state.averaged, found, strict=True))
    ]
    return TrainingState(*(tuple(column) for column in zip(*moved, strict=True))), None


def _moved(step: Step, decays: bool, now: Any, mean: Any, square: Any, averaged: Any, slope: Any) -> tuple[Any, ...]:
    mean = mean + 0.1 * (slope - mean)
    square = square + 0.001 * (slope * slope - square)
    now = now * step.kept if decays else now
    now = now - step.size * mean / (jnp.sqrt(square / step.correction) + 1e-8)
    return now, mean, square, averaged + step.share * (now - averaged)


def _half_square(parameters: Parameters, x: Any, y: Any) -> Any:
    return 0.5 * ((_valued(parameters, x) - y) ** 2).mean()


def _valued(parameters: Parameters, x: Any) -> Any:
    """q of rows."""
    first, first_bias, second, second_bias, last, level = parameters
    one = jax.nn.relu(x @ first + first_bias)
    two = one @ second + second_bias
    two = two - two.mean(axis=1, keepdims=True)
    two = two / jnp.sqrt((two * two).mean(axis=1, keepdims=True) + EPSILON)
    return jax.nn.relu(two) @ last + level


def _expected(parameters: Parameters, pairs: Any, shares: Any) -> Any:
    """Σ p_k q(s, a_k), of pairs (K, n, d)."""
    return jax.lax.map(lambda each: _valued(parameters, each[0]) * each[1], (pairs, shares)).sum(axis=0)


def _at_starts(form: Form, parameters: Parameters, starts: Any, shares: Any) -> Any:
    """The mean of V over the starts, of every network in turn."""
    pairs = jnp.swapaxes(starts, 0, 1)
    return jax.lax.map(lambda one: _expected(one, pairs, shares.T).mean(), parameters)


def _residuals(form: Form, parameters: Parameters, held: DeviceRows, first: Any) -> Any:
    """r + V(s′) − q(s,a) of all rows, of every network in turn, so that memory does not grow with their number."""
    pairs = jnp.swapaxes(held.ahead, 0, 1)

    def off(each: tuple[Parameters, Any]) -> Any:
        one, start = each
        ahead = jnp.where(held.going == 0.0, start, _expected(one, pairs, held.shares.T))
        return held.reward + ahead - _valued(one, held.inputs)

    return jax.lax.map(off, (parameters, first))
