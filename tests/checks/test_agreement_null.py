"""By chance the comparison of parts has the law it is held against: many small pairs, unequal parts, rare states."""

import numpy as np
import pytest

from mixope.checks.agreement import WARN, Parts, disagreement


def parts_of(generator, n_pairs, rows, law, rewards="binary"):
    """One entry for each row: ``rows`` by part of every pair, next states drawn from one law, rewards from another."""
    pair = np.repeat(np.arange(n_pairs), sum(rows))
    part = np.tile(np.repeat(np.arange(len(rows)), rows), n_pairs)
    there = generator.choice(len(law), size=len(pair), p=law)
    reward = (generator.random(len(pair)) < 0.2).astype(float) if rewards == "binary" else np.zeros(len(pair))
    code = pair * len(law) + there
    cell = np.unique(code, return_inverse=True)[1]
    return Parts(part, pair, cell, np.ones(len(pair)), reward, reward, reward)


CASES = {
    "many pairs of twelve rows": (10_000, (6, 6), (0.4, 0.3, 0.2, 0.1)),
    "unequal parts and rare states": (2_000, (5, 200), (0.99, 0.009, 0.001)),
    "one pair": (1, (50, 70), (0.5, 0.3, 0.2)),
    "three parts": (500, (5, 8, 20), (0.9, 0.1)),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_of_one_world_are_about_standard_normal(name):
    generator = np.random.default_rng(11)
    found = [disagreement(parts_of(generator, *CASES[name])) for _ in range(30)]
    for z in ([one.dynamics for one in found], [one.rewards for one in found]):
        assert abs(np.mean(z)) < 0.6
        assert np.std(z) < 1.5
        assert max(z) < WARN


def test_a_law_that_differs_a_little_in_many_small_pairs_comes_out():
    generator = np.random.default_rng(5)
    parts = parts_of(generator, 10_000, (6, 6), (0.5, 0.5))
    moved = (parts.part == 1) & (generator.random(len(parts.part)) < 0.3)
    there = np.where(moved, 0, parts.cell % 2)
    code = np.unique(parts.pair * 2 + there, return_inverse=True)[1]
    found = disagreement(Parts(parts.part, parts.pair, code, parts.rows, parts.reward, parts.lowest, parts.highest))
    assert found.dynamics > WARN
