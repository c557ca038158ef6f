"""The ring of machines against a loop over what can happen, and its long run by both ways of solving it."""

import numpy as np
import pytest

from mixope.base.errors import UsageError
from mixope.worlds import make, truth

FAIL, INFECTED, COST = 0.3, 0.9, 0.1


def by_loops(n):
    """P(s′ | s, a) and r(s, a), machine by machine."""
    P, r = np.zeros((2**n, n + 1, 2**n)), np.zeros((2**n, n + 1))
    for s in range(2**n):
        runs = [s >> i & 1 for i in range(n)]
        for a in range(n + 1):
            r[s, a] = sum(runs) / n - (COST if a < n else 0.0)
            for tested in range(n):
                chance = (FAIL if runs[tested - 1] else INFECTED) if runs[tested] else 0.0
                for fails, probability in ((True, chance), (False, 1 - chance)):
                    after = [0 if fails and i == tested else runs[i] for i in range(n)]
                    if a < n:
                        after[a] = 1
                    P[s, a, sum(bit << i for i, bit in enumerate(after))] += probability / n
    return P, r


@pytest.mark.parametrize("n", [2, 4])
def test_the_model_is_what_the_rules_say(n):
    model = make("machines", n=n, fail=FAIL, infected=INFECTED, cost=COST)
    P, r = by_loops(n)
    np.testing.assert_allclose(model.transition.toarray().reshape(P.shape), P, atol=1e-15)
    np.testing.assert_allclose(model.expected_reward(), r, atol=1e-15)
    assert [column[-1] for column in model.factors.values()] == [1] * n


def test_a_long_run_by_iteration_is_that_by_elimination(monkeypatch):
    model = make("machines", n=6)
    policy = np.random.default_rng(0).dirichlet(np.ones(7), size=64)
    direct = truth.long_run(model, policy)
    monkeypatch.setattr(truth, "MOST_FACTORISED", 10)
    iterated = truth.long_run(model, policy)
    assert iterated.average == pytest.approx(direct.average, abs=1e-13)
    np.testing.assert_allclose(iterated.stationary, direct.stationary, atol=1e-13)
    np.testing.assert_allclose(iterated.differential_value, direct.differential_value, atol=1e-9)


def test_rings_that_make_no_sense_are_refused():
    with pytest.raises(UsageError, match="2 to 16 machines"):
        make("machines", n=40)
    with pytest.raises(UsageError, match="probabilities"):
        make("machines", fail=0.9, infected=0.2)
