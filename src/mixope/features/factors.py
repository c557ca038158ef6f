"""Features of factored states: one-hot main effects and products of factors, for behaviour and value models.

A state that has factors (cell, passenger bits, taxi status …) says something about its neighbours: states that share
factors. Each factor becomes one-hot columns, all levels alike (a ridge makes them identifiable and treats no name
differently); ``order=2`` adds the products of columns of every two factors. Sparse, so the cost is what is non-zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse

from mixope.base.arrays import AnyArray


@dataclass(frozen=True)
class FactorFeatures:
    """φ(s): constant, main effects, and products up to ``order`` factors."""

    order: int = 2

    def transform(self, observations: AnyArray) -> sparse.csr_matrix:
        """φ for the distinct states given, shape (states, columns); columns that are zero throughout are left out."""
        columns = observations.reshape(len(observations), -1)
        effects = [one_hot(columns[:, k]) for k in range(columns.shape[1])]
        blocks = [sparse.csr_matrix(np.ones((len(observations), 1)))]
        for size in range(1, self.order + 1):
            blocks += [_product(list(chosen)) for chosen in combinations(effects, size)]
        matrix = sparse.csc_matrix(sparse.hstack(blocks))
        used = np.flatnonzero(np.diff(matrix.indptr))
        return sparse.csr_matrix(matrix[:, used])


def one_hot(column: AnyArray) -> sparse.csr_matrix:
    """One column per level."""
    values, code = np.unique(column, return_inverse=True)
    shape = (len(column), len(values))
    return sparse.csr_matrix((np.ones(len(column)), (np.arange(len(column)), code)), shape=shape)


def _product(effects: list[sparse.csr_matrix]) -> sparse.csr_matrix:
    """All products of one column from each block."""
    result = effects[0]
    for effect in effects[1:]:
        result = sparse.csr_matrix(sparse.hstack([result.multiply(effect[:, [j]]) for j in range(effect.shape[1])]))
    return result


def cross_actions(features: sparse.csr_matrix, weights: sparse.csr_matrix) -> sparse.csr_matrix:
    """x = φ(s) ⊗ w: ``weights`` (rows, actions) holds one-hot actions or π(·|s); block a of the result is w_a φ(s)."""
    by_action = sparse.csc_matrix(weights)
    return sparse.csr_matrix(
        sparse.hstack([features.multiply(by_action[:, [a]]) for a in range(weights.shape[1])], format="csr")
    )
