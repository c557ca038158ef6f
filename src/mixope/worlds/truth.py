"""What a policy really earns: the four estimands, exact.

    average     η = lim 1/N Σ_{t<N} E r_t           an end restarts from μ₀
    discounted  (1 − γ) E Σ_t γᵗ r_t, from μ₀       an end is absorbing and earns 0
    horizon     1/T Σ_{t<T} E r_t, from μ₀          an end is absorbing and earns 0
    episode     E Σ_t γᵗ r_t, from μ₀, γ ≤ 1        likewise; with γ = 1 every episode must come to an end

A policy makes a Markov chain of a model, P_π(s, s′) = Σ_a π(a|s) P(s′|s, a), r_π(s) = Σ_a π(a|s) E[r | s, a], with two
readings of an end. *Restarted*: a terminated transition goes on from the start law μ₀; rows of P_π sum to 1 (average).
*Stopped*: it leaves the chain; rows may sum to less, and nothing is earned after (all others). Where nothing
terminates the two are the same. The total of an episode is Σ μ₀ V with V = r + P V, which the states that end for sure
solve by themselves; a reward of 1 per step makes it the mean length of an episode.

Average reward η, stationary law d and differential value V come from one factorisation:

    d = d P,   Σ d = 1,   η = Σ d r,        V = r − η + P V,   Σ d V = 0.

Fix a recurrent *anchor* state k and let P₋ be P without its row and column. I − P₋ is invertible, because k is reached
from everywhere with probability 1, and serves both equations (up to scale, and up to a constant):

    d₋ (I − P₋) = P(k, ·)₋  with d(k) = 1,        (I − P₋) V₋ = (r − η)₋  with V(k) = 0.

Only what is reached from the start law counts: the chain must have one closed class there. States that could be caught
in another closed class have no differential value relative to η (NaN). Chains of more than 5,000 states, whose factors
may not fit in memory, are iterated to rounding instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import SuperLU, splu

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.base.errors import UsageError
from mixope.base.estimand import Estimand
from mixope.worlds.model import TOLERANCE, Model

ANCHOR_STEPS = 64
MOST_FACTORISED, MOST_SWEEPS = 5000, 200_000


def value(model: Model, policy: AnyArray, estimand: Estimand) -> float:
    """The value of that name."""
    if estimand.kind == "average":
        return average(model, policy)
    if estimand.horizon is not None:
        return horizon(model, policy, estimand.horizon)
    return estimand.scale * episode(model, policy, estimand.discount)


def long_run(model: Model, policy: AnyArray) -> LongRunTruth:
    """Average, stationary law and differential value from one solve."""
    return solve_chain(restarted(model, policy))


def average(model: Model, policy: AnyArray) -> float:
    """The average reward η = Σ d_π r_π."""
    return long_run(model, policy).average


def stationary(model: Model, policy: AnyArray) -> FloatArray:
    """The stationary law d_π of states, shape (S,)."""
    return long_run(model, policy).stationary


def differential_value(model: Model, policy: AnyArray) -> FloatArray:
    """V = r_π − η + P_π V with Σ d_π V = 0, shape (S,); NaN where the average is not η."""
    return long_run(model, policy).differential_value


def discounted_value(model: Model, policy: AnyArray, gamma: float) -> FloatArray:
    """V = r_π + γ P_π V, un-normalised, shape (S,)."""
    if not 0 <= gamma < 1:
        raise UsageError(f"expected a discount in [0, 1), got {gamma}; for gamma = 1 ask for the average")
    return _summed(stopped(model, policy), gamma, np.ones(model.n_states, dtype=bool))


def discounted(model: Model, policy: AnyArray, gamma: float) -> float:
    """(1 − γ) Σ μ₀ V."""
    return float((1 - gamma) * (model.start @ discounted_value(model, policy, gamma)))


def horizon(model: Model, policy: AnyArray, steps: int) -> float:
    """The mean reward of the first ``steps`` steps."""
    if steps < 1:
        raise UsageError(f"expected a horizon of at least 1 step, got {steps}")
    chain = stopped(model, policy)
    law, total = chain.start, 0.0
    for _ in range(steps):
        total += float(law @ chain.reward)
        law = law @ chain.matrix
    return total / steps


def episode_value(model: Model, policy: AnyArray, gamma: float = 1.0) -> FloatArray:
    """V = r_π + γ P_π V until the end, shape (S,); without a discount NaN where an episode may go on for ever."""
    if gamma != 1:
        return discounted_value(model, policy, gamma)
    chain = stopped(model, policy)
    return _summed(chain, 1.0, _ending(chain))


def episode(model: Model, policy: AnyArray, gamma: float = 1.0) -> float:
    """The total of an episode, Σ μ₀ V."""
    return _from_start(model, episode_value(model, policy, gamma))


def episode_length(model: Model, policy: AnyArray) -> float:
    """The mean number of steps of an episode."""
    chain = stopped(model, policy)
    each_step = PolicyChain(chain.matrix, np.ones(model.n_states), chain.start)
    return _from_start(model, _summed(each_step, 1.0, _ending(chain)))


def episode_visits(model: Model, policy: AnyArray) -> FloatArray:
    """How often an episode is in each state: Σ_t p_t = μ₀ (I − P_π)⁻¹, shape (S,)."""
    chain = stopped(model, policy)
    reached = np.flatnonzero(_reachable(chain.matrix, np.flatnonzero(chain.start > 0)))
    if not _ending(chain)[reached].all():
        raise _endless(model)
    visits = np.zeros(model.n_states)
    visits[reached] = _lu(chain.matrix, 1.0, reached).solve(chain.start[reached], trans="T")  # type: ignore[call-overload]
    return visits


def _from_start(model: Model, V: FloatArray) -> float:
    possible = model.start > 0
    total = float(model.start[possible] @ V[possible])
    if np.isnan(total):
        raise _endless(model)
    return total


def _endless(model: Model) -> UsageError:
    return UsageError(
        f"on {model.name} this policy may go on for ever, so that an episode has no total;"
        " ask for one with a discount, or for the average"
    )


def _summed(chain: PolicyChain, gamma: float, domain: BoolArray) -> FloatArray:
    """V = r + γ P V on a set of states that is not left, except by an end; NaN elsewhere."""
    inside, V = np.flatnonzero(domain), np.full(len(domain), np.nan)
    V[inside] = _lu(chain.matrix, gamma, inside).solve(chain.reward[inside])
    return V


def _lu(matrix: sparse.csr_array, gamma: float, states: IntArray) -> SuperLU:
    return splu(sparse.csc_array(sparse.eye_array(len(states)) - gamma * matrix[states][:, states]))


def _ending(chain: PolicyChain) -> BoolArray:
    """The states from which an episode ends for sure: none from which no end can be reached lies ahead."""
    backwards = sparse.csr_array(chain.matrix.T)
    leaks = 1 - np.asarray(chain.matrix.sum(axis=1), dtype=np.float64) > TOLERANCE
    caught = ~_reachable(backwards, np.flatnonzero(leaks))
    return ~_reachable(backwards, np.flatnonzero(caught))


@dataclass(frozen=True, eq=False)
class PolicyChain:
    """A policy's transition matrix, expected reward by state, and start law."""

    matrix: sparse.csr_array
    reward: FloatArray
    start: FloatArray


def restarted(model: Model, policy: AnyArray) -> PolicyChain:
    """P_π(s, s′) + P_π(s, end) μ₀(s′)."""
    chain = stopped(model, policy)
    if not model.ends:
        return chain
    ending = (model.expected(model.terminated.astype(np.float64)) * policy).sum(axis=1)
    matrix = sparse.csr_array(chain.matrix + sparse.csr_array(ending[:, None]) @ sparse.csr_array(chain.start[None, :]))
    return PolicyChain(matrix, chain.reward, chain.start)


def stopped(model: Model, policy: AnyArray) -> PolicyChain:
    """P_π without the transitions that end an episode."""
    probabilities = model.checked_policy(policy)
    reward = (probabilities * model.expected_reward()).sum(axis=1)
    return PolicyChain(sparse.csr_array(_mixing(probabilities) @ _going_on(model)), reward, model.start)


def _going_on(model: Model) -> sparse.csr_array:
    if not model.ends:
        return model.transition
    kept = model.transition.copy()
    kept.data = np.where(model.terminated, 0.0, kept.data)
    kept.eliminate_zeros()
    return kept


def _mixing(probabilities: FloatArray) -> sparse.csr_array:
    """The (S, S·A) matrix that averages the rows s·A + a over π(·|s); zeros dropped so that the graph is π's own."""
    n_states, n_actions = probabilities.shape
    cells = np.arange(n_states * n_actions)
    mixing = sparse.csr_array(
        (probabilities.flatten(), cells, np.arange(n_states + 1) * n_actions), shape=(n_states, n_states * n_actions)
    )
    mixing.eliminate_zeros()
    return mixing


@dataclass(frozen=True, eq=False)
class LongRunTruth:
    """η, d (0 outside the recurrent class) and V (NaN where the chain may end up elsewhere)."""

    average: float
    stationary: FloatArray
    differential_value: FloatArray


def solve_chain(chain: PolicyChain) -> LongRunTruth:
    """η, d and V by the equations of the module."""
    home, domain = _recurrent_class(chain)
    if len(home) > MOST_FACTORISED:
        return _iterated(chain, home, domain)
    anchor = _often_visited(chain, home)
    rest = np.flatnonzero(domain & (np.arange(len(home)) != anchor))
    P = chain.matrix
    lu = splu(sparse.csc_array(sparse.eye_array(len(rest)) - P[rest][:, rest]))
    d = np.zeros(len(home))
    d[anchor] = 1.0
    leaving = P[[anchor]].toarray()[0, rest]
    d[rest] = lu.solve(leaving, trans="T")  # type: ignore[call-overload]  # the stubs do not know of trans
    d = np.where(home, np.maximum(d, 0.0), 0.0)
    d /= d.sum()
    average = float(d @ chain.reward)
    V = np.full(len(home), np.nan)
    V[anchor] = 0.0
    V[rest] = lu.solve(chain.reward[rest] - average)
    return LongRunTruth(average, d, V - d[home] @ V[home])


def _iterated(chain: PolicyChain, home: BoolArray, domain: BoolArray) -> LongRunTruth:
    """d and V as the fixed points of their equations; half of every step is taken, so that no period matters."""
    forward, backward = sparse.csr_array(chain.matrix), sparse.csr_array(chain.matrix.T)
    d = _fixed_point(lambda law: backward @ law, np.where(home, 1.0 / home.sum(), 0.0))
    d = d / d.sum()
    average = float(d @ chain.reward)
    gain = np.where(domain, chain.reward - average, 0.0)
    V = _fixed_point(lambda v: np.where(domain, gain + forward @ v - d @ v, 0.0), np.zeros(len(home)))
    return LongRunTruth(average, d, np.where(domain, V - d @ V, np.nan))


def _fixed_point(step: Callable[[FloatArray], FloatArray], x: FloatArray) -> FloatArray:
    for _ in range(MOST_SWEEPS):
        moved = step(x)
        if float(np.abs(moved - x).max()) <= 1e-15 * max(float(np.abs(x).max()), 1e-300) * len(x) ** 0.5:
            return moved
        x = 0.5 * (x + moved)
    raise UsageError(f"this chain mixes too slowly to be solved by {MOST_SWEEPS:,} sweeps; ask for fewer states")


def _recurrent_class(chain: PolicyChain) -> tuple[BoolArray, BoolArray]:
    """The closed class reached from the start, and the states that end up in it for sure."""
    count, label = csgraph.connected_components(chain.matrix, directed=True, connection="strong")
    closed = _closed_classes(chain.matrix, label.astype(np.int64), count)
    reached = _reachable(chain.matrix, np.flatnonzero(chain.start > 0))
    classes = np.unique(label[reached & closed[label]])
    if len(classes) != 1:
        raise UsageError(
            f"the long run depends on chance: the policy can end up in {len(classes)} separate closed classes;"
            " ask for a discounted or horizon value, or give the policy full support"
        )
    home = label == classes[0]
    elsewhere = closed[label] & ~home
    doomed = _reachable(sparse.csr_array(chain.matrix.T), np.flatnonzero(elsewhere))
    return home, ~doomed


def _closed_classes(matrix: sparse.csr_array, label: IntArray, count: int) -> BoolArray:
    """Which strongly connected components have no way out."""
    edges = matrix.tocoo()
    leaves = label[edges.row] != label[edges.col]
    closed = np.ones(count, dtype=bool)
    closed[label[edges.row[leaves]]] = False
    return closed


def _reachable(matrix: sparse.csr_array, sources: IntArray) -> BoolArray:
    """The states reached from any of the sources, the sources included."""
    found = np.zeros(matrix.shape[0], dtype=bool)
    found[sources] = True
    frontier = found
    while frontier.any():
        step = (frontier.astype(np.float64) @ matrix) > 0
        frontier = step & ~found
        found = found | frontier
    return found


def _often_visited(chain: PolicyChain, home: BoolArray) -> int:
    """A recurrent state of large mass: an anchor that is rarely visited would make I − P₋ nearly singular."""
    law, visits = chain.start, np.zeros(len(home))
    for _ in range(ANCHOR_STEPS):
        law = law @ chain.matrix
        visits += law
    return int(np.where(home, visits, -1.0).argmax())
