"""The Markov chain that a policy makes of a model, with the two readings of an end.

    P_π(s, s′) = Σ_a π(a|s) P(s′|s, a),      r_π(s) = Σ_a π(a|s) E[r | s, a].

*Restarted*: a terminated transition goes on from the start law μ₀; rows of P_π sum to 1 (average reward).
*Stopped*: a terminated transition leaves the chain; rows may sum to less, and nothing is earned after (discounted and
finite-horizon rewards). Where nothing terminates the two are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mixope.arrays import AnyArray, FloatArray
from mixope.environments.model import Model


@dataclass(frozen=True, eq=False)
class Chain:
    """A policy's transition matrix, expected reward by state, and start law."""

    matrix: sparse.csr_array
    reward: FloatArray
    start: FloatArray


def restarted(model: Model, policy: AnyArray) -> Chain:
    """P_π(s, s′) + P_π(s, end) μ₀(s′)."""
    chain = stopped(model, policy)
    if not model.ends:
        return chain
    ending = (model.expected(model.terminated.astype(np.float64)) * policy).sum(axis=1)
    matrix = sparse.csr_array(chain.matrix + sparse.csr_array(ending[:, None]) @ sparse.csr_array(chain.start[None, :]))
    return Chain(matrix, chain.reward, chain.start)


def stopped(model: Model, policy: AnyArray) -> Chain:
    """P_π without the transitions that end an episode."""
    probabilities = model.checked_policy(policy)
    reward = (probabilities * model.expected_reward()).sum(axis=1)
    return Chain(sparse.csr_array(_mixing(probabilities) @ _going_on(model)), reward, model.start)


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
