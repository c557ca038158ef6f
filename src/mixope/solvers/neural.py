"""The state ratio as a small network, in JAX: ω(s) = softplus(network(z)), z the standardised state.

    "tests"    full batch, the discriminator in closed form over whitened tests ψ:  min ½‖F‖²,
               F = Σ c ω(s) (ψ(s) − γ ρ ψ(s′)) / Σ c − (1−γ) b,  and one more equation,  Σ c ω / Σ c = 1
    "kernel"   the paper's loss with mini-batches and Adam: mean over pairs of Δ Δ̄ k(s′, s̄′),  Δ = ω(s) ρ − ω(s′),
               ω divided by its mean over the batch, k Gaussian with the median bandwidth

The first is a least-squares problem with as few equations as there are tests, so it is solved by Levenberg–Marquardt in
test space: δ = −Jᵀ(JJᵀ + μ)⁻¹F with J = ∂F/∂θ, one row a test. First-order steps hardly move ω: the problem is
ill-conditioned, and the report says by how much the loss fell. Several networks are trained at once, one a seed.

When to stop: once the loss has fallen to ``tolerance`` of its start ("converged"), all rows teaching. Stopping where
the loss on held-out episodes is least ("held-out") is offered and is not the default: in many whitened tests that loss
is mostly noise, which grows with the spread of ω, so it prefers ω near 1 (three logs of Pendulum: off by −0.3 … −0.9).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from mixope.base.arrays import AnyArray, BoolArray, FloatArray
from mixope.base.errors import MissingExtra, UsageError

Loss = Literal["tests", "kernel"]
#: A loss that ends above this share of its start has hardly moved
HARDLY = 0.5
_PIECE = 2048


def load_jax() -> Any:
    """JAX, or the line that installs it."""
    try:
        return import_module("jax")
    except ImportError as error:
        raise MissingExtra("jax", "a neural ratio") from error


@dataclass(frozen=True)
class NeuralSettings:
    """How to train. ``steps`` are at most so many Levenberg–Marquardt steps, ``adam_steps`` mini-batches of the kernel.

    ``tolerance``: share of the first loss at which a network has converged. ``patience``: with ``stop="held-out"``,
    steps without a better held-out loss after which to stop (the best is kept).
    """

    loss: Loss = "tests"
    hidden: tuple[int, int] = (32, 32)
    seeds: int = 5
    steps: int = 80
    stop: Literal["converged", "held-out"] = "converged"
    tolerance: float = 1e-2
    patience: int = 10
    adam_steps: int = 2000
    batch: int = 512
    rate: float = 1e-3

    def __post_init__(self) -> None:
        if self.loss not in ("tests", "kernel"):
            raise UsageError(f"expected loss 'tests' or 'kernel', got {self.loss!r}")
        if min(self.seeds, self.steps, self.adam_steps, self.batch, *self.hidden) < 1:
            raise UsageError("expected at least one seed, step, row a batch and unit a layer")


@dataclass(frozen=True)
class NeuralRows:
    """Rows to train on: standardised z and z′, ρ, c, tests ``difference`` = ψ(s) − γρψ(s′), ``right`` = (1−γ)b."""

    states: FloatArray
    following: FloatArray
    ratio: FloatArray
    weight: FloatArray
    difference: FloatArray
    right: FloatArray


@dataclass(frozen=True)
class TrainedNetworks:
    """Trained networks (one a seed) and how it went: losses on the rows each trained on and on those held out."""

    parameters: Any
    first_loss: FloatArray
    last_loss: FloatArray
    first_held_out: FloatArray
    last_held_out: FloatArray
    residual: FloatArray
    steps: int

    @property
    def fall(self) -> float:
        """Last loss ÷ first loss, the median over seeds."""
        return float(np.median(self.last_loss / np.maximum(self.first_loss, 1e-300)))

    @property
    def moved(self) -> bool:
        """Whether training did anything."""
        return self.fall < HARDLY

    @property
    def message(self) -> str:
        """What happened, in words."""
        share = f"it ended at {self.fall:.2g} of where it began (median of {len(self.last_loss)} seeds)"
        if self.moved:
            return f"the loss fell: {share}"
        return f"the loss hardly moved: {share}, so the ratio is still close to 1 and the value close to that of ω = 1"

    def ratios(self, states: AnyArray) -> FloatArray:
        """ω(s) of every seed, shape (seeds, n); not normalised."""
        jax = load_jax()
        pieces = [states[k : k + _PIECE] for k in range(0, len(states), _PIECE)]
        found = [np.asarray(_ratios(jax)(self.parameters, _narrow(_filled(p)))[:, : len(p)]) for p in pieces]
        return np.concatenate(found, axis=1).astype(np.float64) if found else np.zeros((len(self.first_loss), 0))


def train(rows: NeuralRows, held_out: BoolArray, settings: NeuralSettings, seed: int = 0) -> TrainedNetworks:
    """Train one network a line of ``held_out`` (seeds, n): rows marked there judge, the others teach (none may be)."""
    jax = load_jax()
    keys = jax.random.split(jax.random.key(seed), len(held_out))
    begin = jax.vmap(partial(_begin, jax, rows.states.shape[1], settings.hidden))(keys)
    if settings.loss == "kernel":
        return _train_kernel(jax, rows, held_out, settings, begin, seed)
    return _train_tests(jax, rows, held_out, settings, begin)


def _begin(jax: Any, inputs: int, hidden: tuple[int, int], key: Any) -> Any:
    """Layers ((W, b), …); the last begins small, so that ω begins near 1."""
    sizes = [inputs, *hidden, 1]
    layers = []
    for k, (n, m) in enumerate(pairwise(sizes)):
        last = k == len(sizes) - 2
        key, one = jax.random.split(key)
        spread = (0.1 if last else 1.0) / np.sqrt(n)
        start = np.log(np.e - 1.0) if last else 0.0  # softplus of it is 1
        layers.append((spread * jax.random.normal(one, (n, m)), start + jax.numpy.zeros(m)))
    return layers


def network(jax: Any, layers: Any, states: Any) -> Any:
    """ω of every row."""
    x = states
    for weight, bias in layers[:-1]:
        x = jax.numpy.tanh(x @ weight + bias)
    weight, bias = layers[-1]
    return jax.nn.softplus(x @ weight + bias)[:, 0]


def _ratios(jax: Any) -> Callable[[Any, Any], Any]:
    compiled: Callable[[Any, Any], Any] = jax.jit(jax.vmap(partial(network, jax), in_axes=(0, None)))
    return compiled


# ------------------------------------------------------------------------------------------------ tests


def _train_tests(
    jax: Any, rows: NeuralRows, held_out: BoolArray, settings: NeuralSettings, begin: Any
) -> TrainedNetworks:
    """Levenberg–Marquardt, all seeds in step, each with a damping μ of its own; who has converged stands still."""
    problem = _Tests(jax, rows, held_out)
    theta, unravel = _flat(jax, begin)
    residual, jacobian = problem.linearised(theta, unravel)
    first, judged = _squares(residual), problem.held_out_loss(theta, unravel)
    best, best_judged, since = theta, judged, 0
    damping, step = np.full(len(held_out), 1e-2), 0
    while step < settings.steps and since < settings.patience:
        loss = _squares(residual)
        active = loss > settings.tolerance * first
        if not active.any():
            break
        step += 1
        trial = theta + _marquardt(jacobian, residual, damping)
        tried, slopes = problem.linearised(trial, unravel)
        better = active & (_squares(tried) < loss)
        damping = np.clip(np.where(better, damping / 3, damping * 4), 1e-12, 1e6)
        theta = np.where(better[:, None], trial, theta)
        residual = np.where(better[:, None], tried, residual)
        jacobian = np.where(better[:, None, None], slopes, jacobian)
        if settings.stop == "held-out":
            now = problem.held_out_loss(theta, unravel)
            improved = now < best_judged * (1 - 1e-3)
            best, best_judged = np.where(improved[:, None], theta, best), np.where(improved, now, best_judged)
            since = 0 if improved.any() else since + 1
    chosen = best if settings.stop == "held-out" else theta
    last = _squares(problem.linearised(chosen, unravel)[0])
    size = problem.size(chosen, unravel)
    parameters, ended = jax.vmap(unravel)(_narrow(chosen)), problem.held_out_loss(chosen, unravel)
    return TrainedNetworks(parameters, first, last, judged, ended, np.sqrt(last) / size, step)


def _marquardt(jacobian: FloatArray, residual: FloatArray, damping: FloatArray) -> FloatArray:
    """−Jᵀ(JJᵀ + μ t)⁻¹F for every seed, t the mean of JJᵀ's diagonal; in float64, for the system is ill-conditioned."""
    gram = jacobian @ jacobian.transpose(0, 2, 1)
    level = damping * np.trace(gram, axis1=1, axis2=2) / gram.shape[1]
    gram = gram + level[:, None, None] * np.eye(gram.shape[1])
    dual = np.linalg.solve(gram, residual[:, :, None])
    return np.asarray(-(jacobian.transpose(0, 2, 1) @ dual)[:, :, 0])


def _squares(residual: FloatArray) -> FloatArray:
    return np.asarray((residual**2).sum(axis=1))


class _Tests:
    """F and ∂F/∂θ of every seed, rows taken a piece at a time."""

    def __init__(self, jax: Any, rows: NeuralRows, held_out: BoolArray) -> None:
        self.jax = jax
        ones = np.ones(len(rows.weight))
        tests = np.column_stack([rows.difference, ones])
        self.right = np.append(rows.right, 1.0)
        teach, judge = rows.weight * ~held_out, rows.weight * held_out
        self.teach, self.judge = (c / np.maximum(c.sum(axis=1, keepdims=True), 1e-300) for c in (teach, judge))
        pieces = [slice(k, k + _PIECE) for k in range(0, len(ones), _PIECE)]
        self.pieces = [
            (
                _narrow(_filled(rows.states[p])),
                _narrow(_filled(tests[p])),
                *(_narrow(_filled(c[:, p].T).T) for c in (self.teach, self.judge)),
            )
            for p in pieces
        ]
        self._compiled: dict[str, Callable[..., Any]] = {}

    def _of(self, name: str, unravel: Any) -> Callable[..., Any]:
        if name in self._compiled:
            return self._compiled[name]
        jax = self.jax

        def one(theta: Any, z: Any) -> Any:
            return network(jax, unravel(theta), z[None])[0]

        def slopes(theta: Any, states: Any, tests: Any, c: Any) -> tuple[Any, Any]:
            omega, gradient = jax.vmap(jax.value_and_grad(one), in_axes=(None, 0))(theta, states)
            return (c * omega) @ tests, tests.T @ (c[:, None] * gradient)

        def plain(theta: Any, states: Any, tests: Any, c: Any) -> Any:
            return (c * network(jax, unravel(theta), states)) @ tests

        def square(theta: Any, states: Any, c: Any) -> Any:
            return c @ network(jax, unravel(theta), states) ** 2

        self._compiled["slopes"] = jax.jit(
            lambda theta, states, tests, c: jax.lax.map(lambda x: slopes(x[0], states, tests, x[1]), (theta, c))
        )
        self._compiled["plain"] = jax.jit(jax.vmap(plain, in_axes=(0, None, None, 0)))
        self._compiled["square"] = jax.jit(jax.vmap(square, in_axes=(0, None, 0)))
        return self._compiled[name]

    def linearised(self, theta: FloatArray, unravel: Any) -> tuple[FloatArray, FloatArray]:
        """F (seeds, tests + 1) and J (seeds, tests + 1, parameters), summed in float64."""
        run, narrow = self._of("slopes", unravel), _narrow(theta)
        residual: FloatArray = np.zeros((len(theta), len(self.right)))
        jacobian: FloatArray = np.zeros((*residual.shape, theta.shape[1]))
        for states, tests, teach, _ in self.pieces:
            value, slope = run(narrow, states, tests, teach)
            residual += np.asarray(value, dtype=np.float64)
            jacobian += np.asarray(slope, dtype=np.float64)
        return residual - self.right, jacobian

    def held_out_loss(self, theta: FloatArray, unravel: Any) -> FloatArray:
        """‖F‖² on the rows held out; NaN where there are none."""
        run, narrow = self._of("plain", unravel), _narrow(theta)
        total = sum(np.asarray(run(narrow, s, t, judge), dtype=np.float64) for s, t, _, judge in self.pieces)
        return np.where(self.judge.any(axis=1), _squares(total - self.right), np.nan)

    def size(self, theta: FloatArray, unravel: Any) -> FloatArray:
        """√(mean of ω²): what a residual is compared with."""
        run, narrow = self._of("square", unravel), _narrow(theta)
        total = sum(np.asarray(run(narrow, s, teach), dtype=np.float64) for s, _, teach, _ in self.pieces)
        return np.sqrt(total)


# ----------------------------------------------------------------------------------------------- kernel


def _train_kernel(
    jax: Any, rows: NeuralRows, held_out: BoolArray, settings: NeuralSettings, begin: Any, seed: int
) -> TrainedNetworks:
    """Adam on mini-batches drawn with probability ∝ c; the loss is reported on fixed batches of each part."""
    generator = np.random.default_rng([seed, 29])
    data = tuple(jax.numpy.asarray(_narrow(a)) for a in (rows.states, rows.following, rows.ratio))
    loss = partial(_kernel_loss, jax, _bandwidth(rows.following, generator))
    teach = [_chances(rows.weight * ~mask) for mask in held_out]
    judge = [_chances(rows.weight * mask) for mask in held_out] if held_out.any(axis=1).all() else None
    size = min(settings.batch, len(rows.ratio))

    def draw(chances: list[FloatArray], count: int, n: int) -> Any:
        return np.stack([generator.choice(len(p), (count, n), p=p) for p in chances]).astype(np.int32)

    def measured(index: Any) -> Callable[[Any], FloatArray]:
        run = jax.jit(jax.vmap(lambda theta, i: loss(theta, *(a[i] for a in data))))
        return lambda theta: np.asarray(run(theta, index), dtype=np.float64)

    many = min(2000, len(rows.ratio))
    none = np.full(len(held_out), np.nan)
    on_taught = measured(draw(teach, 1, many)[:, 0])
    on_held_out = measured(draw(judge, 1, many)[:, 0]) if judge else lambda theta: none
    run = jax.jit(jax.vmap(partial(_adam, jax, lambda theta, i: loss(theta, *(a[i] for a in data)), settings.rate)))
    first, first_judged = on_taught(begin), on_held_out(begin)
    theta = run(begin, draw(teach, settings.adam_steps, size))
    last = on_taught(theta)
    return TrainedNetworks(theta, first, last, first_judged, on_held_out(theta), np.sqrt(last), settings.adam_steps)


def _kernel_loss(jax: Any, width: float, theta: Any, states: Any, following: Any, ratio: Any) -> Any:
    """Mean over pairs of rows of Δ Δ̄ k(s′, s̄′), ω divided by its mean over the batch."""
    numpy = jax.numpy
    here, ahead = network(jax, theta, states), network(jax, theta, following)
    gap = (here * ratio - ahead) / here.mean()
    squared = ((following[:, None] - following[None]) ** 2).sum(axis=2)
    return gap @ numpy.exp(-0.5 * squared / width**2) @ gap / len(gap) ** 2


def _adam(jax: Any, loss: Callable[[Any, Any], Any], rate: float, theta: Any, batches: Any) -> Any:
    """Adam (Kingma & Ba 2015) with its usual constants, one step a batch."""
    tree, zero = jax.tree_util.tree_map, jax.numpy.zeros_like

    def step(carry: Any, index: Any) -> tuple[Any, None]:
        theta, mean, square, t = carry
        slope = jax.grad(loss)(theta, index)
        mean = tree(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
        square = tree(lambda v, g: 0.999 * v + 0.001 * g**2, square, slope)
        scale = rate * jax.numpy.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        theta = tree(lambda p, m, v: p - scale * m / (jax.numpy.sqrt(v) + 1e-8), theta, mean, square)
        return (theta, mean, square, t + 1.0), None

    return jax.lax.scan(step, (theta, tree(zero, theta), tree(zero, theta), 1.0), batches)[0][0]


def _bandwidth(states: FloatArray, generator: np.random.Generator) -> float:
    """The median distance between rows of a sample."""
    some = states[generator.choice(len(states), min(len(states), 500), replace=False)]
    distance = np.sqrt(((some[:, None] - some[None]) ** 2).sum(axis=2))
    return float(np.median(distance[distance > 0])) if (distance > 0).any() else 1.0


def _chances(weight: FloatArray) -> FloatArray:
    return np.asarray(weight / weight.sum())


# ------------------------------------------------------------------------------------------------ arrays


def _flat(jax: Any, layers: Any) -> tuple[FloatArray, Any]:
    """Parameters of all seeds as (seeds, parameters), and the way back for one seed."""
    from jax.flatten_util import ravel_pytree

    _, unravel = ravel_pytree(jax.tree_util.tree_map(lambda x: x[0], layers))
    return np.asarray(jax.vmap(lambda x: ravel_pytree(x)[0])(layers), dtype=np.float64), unravel


def _filled(array: AnyArray) -> AnyArray:
    """Zeros up to the length of a piece, so that one compiled function serves all pieces."""
    missing = _PIECE - len(array)
    return np.pad(array, [(0, missing), *[(0, 0)] * (array.ndim - 1)]) if missing else array


def _narrow(array: Any) -> Any:
    return np.asarray(array, dtype=np.float32)
