"""Users who differ for ever are found by all that they were before, where one day back finds few of them."""

import numpy as np
import pyarrow as pa
import pytest

import mixope

from .tables import WORDS, two_states


def settling(spread, seed, users=1200, days=14):
    """Levels 0–4: every user settles around one of its own. Treatment adds to what is gained.

    They have lived under control for 200 days.
    """
    g = np.random.default_rng(seed)
    treated, p = np.arange(users) % 2 == 1, np.exp(spread * g.normal(size=users))
    level, parts = np.zeros(users, dtype=int), []
    for day in range(-200, days):
        up = np.clip(0.12 * p + 0.05 * (treated & (day >= 0)), 0, 0.45)
        drawn, down = g.random(users), np.clip(0.12 / p, 0, 0.45)
        later = np.clip(level + (drawn < up) - (drawn > 1 - down), 0, 4)
        if day >= 0:
            earned = 0.2 * level + 0.3 * g.normal(size=users)
            parts.append((np.arange(users), np.full(users, day), treated, level, earned))
        level = later
    user, day, arm, level, earned = (np.concatenate(part) for part in zip(*parts, strict=True))
    names = np.where(arm, "B", "A")
    return pa.table({"user": user, "day": day, "variant": names, "level": level, "revenue": earned})


def history(table, state):
    found = mixope.experiment(table, **WORDS, state=state).main.long_run
    return next(check for check in found.checks if check.name == "history")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 10))])
def test_users_who_settle_where_they_like_are_found(seed):
    check = history(settling(1.0, seed), "level")
    assert (check.status, check.value > 3) == ("warn", True)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 10))])
def test_users_who_are_all_alike_pass(seed):
    assert history(settling(0.0, seed), "level").status == "pass"


def test_a_state_that_is_all_passes():
    assert history(two_states(effect=0.1), "tired").status == "pass"
