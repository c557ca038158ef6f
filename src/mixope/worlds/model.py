"""A discrete environment as an explicit sparse model: every law is written down, so every truth can be solved.

For state ``s`` and action ``a`` row ``s·A + a`` of ``transition`` holds P(s′ | s, a). The reward of a transition,
r(s, a, s′), and whether it ends the episode are arrays beside the stored entries of that matrix. Episodes start from
the law μ₀ (``start``). What an end means is up to the estimand (see :mod:`~mixope.worlds.truth`); a restart that
belongs to the world is an ordinary transition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from scipy import sparse

from mixope.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from mixope.base.errors import UsageError

TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Model:
    """A finite Markov decision process with ``n_states`` states and ``n_actions`` actions.

    ``reward`` and ``terminated`` are aligned with ``transition.data``. ``factors`` names integer columns of length
    ``n_states`` that together tell every state apart; an environment of opaque states has none.
    """

    name: str
    n_actions: int
    transition: sparse.csr_array
    reward: FloatArray
    terminated: BoolArray
    start: FloatArray
    factors: Mapping[str, IntArray] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        rows, n_states = self.transition.shape
        entries = self.transition.data.shape
        _require(rows == n_states * self.n_actions, f"{n_states * self.n_actions} rows of transition", rows)
        _require(self.reward.shape == entries, f"a reward for each of {entries} transitions", self.reward.shape)
        _require(self.terminated.shape == entries, f"an end flag for each of {entries}", self.terminated.shape)
        _require(self.start.shape == (n_states,), f"a start law of shape {(n_states,)}", self.start.shape)
        _require_law(self.start[None, :], "the start law")
        _require(bool((self.transition.data >= 0).all()), "probabilities of at least 0", self.transition.data.min())
        _require_sums(np.asarray(self.transition.sum(axis=1), dtype=np.float64), "the rows of transition")
        for name, column in self.factors.items():
            _require(column.shape == (n_states,), f"factor {name!r} of shape {(n_states,)}", column.shape)

    @property
    def n_states(self) -> int:
        """How many states there are; their ids are 0 … n_states − 1."""
        return int(self.transition.shape[1])

    @property
    def ends(self) -> bool:
        """Whether some transition ends an episode."""
        return bool(self.terminated.any())

    def entry_rows(self) -> IntArray:
        """The row s·A + a of every stored transition."""
        return np.repeat(np.arange(self.transition.shape[0]), np.diff(self.transition.indptr))

    def expected(self, values: FloatArray) -> FloatArray:
        """E[x | s, a] for x given on every stored transition: shape ``(n_states, n_actions)``."""
        rows = self.transition.shape[0]
        mass = np.asarray(self.transition.data, dtype=np.float64)
        sums = np.bincount(self.entry_rows(), weights=mass * values, minlength=rows)
        return np.asarray(sums, dtype=np.float64).reshape(self.n_states, self.n_actions)

    def expected_reward(self) -> FloatArray:
        """r(s, a) = E[r | s, a]."""
        return self.expected(self.reward)

    def checked_policy(self, policy: AnyArray) -> FloatArray:
        """The policy as floats, or an error that says what is wrong with it."""
        probabilities = np.asarray(policy, dtype=np.float64)
        shape = (self.n_states, self.n_actions)
        _require(probabilities.shape == shape, f"a policy of shape {shape} for {self.name}", probabilities.shape)
        _require_law(probabilities, f"a policy for {self.name}")
        return probabilities

    def __repr__(self) -> str:
        kind = "episodic" if self.ends else "continuing"
        factors = f", factors: {', '.join(self.factors)}" if self.factors else ""
        return f"Model({self.name}: {self.n_states} states, {self.n_actions} actions, {kind}{factors})"


def from_outcomes(
    name: str,
    *,
    shape: tuple[int, int],
    state: IntArray,
    action: IntArray,
    next_state: IntArray,
    probability: FloatArray,
    reward: FloatArray,
    start: FloatArray,
    terminated: BoolArray | None = None,
    factors: Mapping[str, IntArray] | None = None,
) -> Model:
    """A model from a list of outcomes; those that share (s, a, s′) are added up and must agree on reward and end.

    ``shape`` is (n_states, n_actions). Outcomes of probability 0 are left out.
    """
    n_states, n_actions = shape
    ended = np.zeros(len(state), dtype=bool) if terminated is None else terminated
    key = (state * n_actions + action) * n_states + next_state
    possible = np.flatnonzero(probability > 0)
    cells, first, group = np.unique(key[possible], return_index=True, return_inverse=True)
    first = possible[first]
    agree = (reward[possible] == reward[first][group]) & (ended[possible] == ended[first][group])
    _require(bool(agree.all()), "one reward and one end flag for each (s, a, s′)", f"{(~agree).sum()} that differ")
    mass = np.bincount(group, weights=probability[possible])
    rows = np.concatenate([[0], np.cumsum(np.bincount(cells // n_states, minlength=n_states * n_actions))])
    transition = sparse.csr_array((mass, cells % n_states, rows), shape=(n_states * n_actions, n_states))
    return Model(
        name=name,
        n_actions=n_actions,
        transition=transition,
        reward=reward[first].astype(np.float64),
        terminated=ended[first],
        start=np.asarray(start, dtype=np.float64),
        factors=MappingProxyType(dict(factors or {})),
    )


def _require(holds: bool, expected: str, got: object) -> None:
    if not holds:
        raise UsageError(f"expected {expected}, got {got}")


def _require_law(laws: FloatArray, what: str) -> None:
    _require(bool((laws >= 0).all()), f"probabilities of at least 0 in {what}", laws.min())
    _require_sums(laws.sum(axis=1), what)


def _require_sums(sums: FloatArray, what: str) -> None:
    worst = int(np.abs(sums - 1).argmax())
    _require(bool(abs(sums[worst] - 1) <= TOLERANCE), f"{what} to sum to 1", f"{sums[worst]} in row {worst}")
