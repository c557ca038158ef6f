"""The lowest and highest value of a given number of steps, some of which may count more than others.

As in :mod:`mixope.solvers.reweighted`, but nature answers anew at every step, backwards from the last:

    V_T = 0,      V_t(s) = min_λ Σ_c p λ [w_t r + V_{t+1}(s′)],      value = μ · V_0

With w_t = 1/T it is the mean of the first T steps, with w_t = 1 at one step alone what that step earns. Far from the
end λ no longer changes: nature is asked again only where its last answer is no longer right.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mixope.base.arrays import FloatArray
from mixope.solvers.bounds import Side
from mixope.solvers.reweighted import Extreme, Filling, NodeOutcomes, Room, fill, slopes


def extreme_path(steps: NodeOutcomes, room: Room, counted: FloatArray, side: Side) -> Extreme:
    """The lowest or highest Σ_t w_t r_t with w = ``counted``."""
    sign = 1.0 if side == "low" else -1.0
    reward = sign * steps.reward
    worth, answers = _backwards(steps, room, counted, reward)
    law = steps.start
    by_share, by_reward, by_known = np.zeros(len(reward)), np.zeros(len(reward)), np.zeros(steps.n_nodes)
    for step, (answer, moves) in enumerate(answers):
        y = counted[step] * reward + worth[step + 1][steps.next_state]
        share, known = slopes(steps, room, y, answer)
        nodes = steps.at_nodes(law)
        by_share += nodes[steps.node] * share
        by_reward += counted[step] * nodes[steps.node] * answer.weight
        by_known += nodes * known
        law = np.asarray(law @ moves)
    first = worth[0][:-1]
    value = float(steps.start @ first)
    return Extreme(sign * value, sign * by_share, by_reward, sign * by_known, sign * first)


def _backwards(
    steps: NodeOutcomes, room: Room, counted: FloatArray, reward: FloatArray
) -> tuple[FloatArray, list[tuple[Filling, sparse.csr_matrix]]]:
    """V_0 … V_T, each with nothing after an end (last), and of every step nature's answer with the P that it makes."""
    length = len(counted)
    worth = np.zeros((length + 1, steps.n_states + 1))
    answers: list[tuple[Filling, sparse.csr_matrix]] = []
    for step in reversed(range(length)):
        y = counted[step] * reward + worth[step + 1][steps.next_state]
        if answers and answers[-1][0].answers(steps, y):
            answers.append(answers[-1])
        else:
            answer = fill(steps, room, y)
            answers.append((answer, steps.moves(answer.weight)))
        worth[step, :-1] = steps.by_state(answers[-1][0].weight * y)
    return worth, answers[::-1]
