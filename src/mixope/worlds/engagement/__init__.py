"""A simulated product experiment whose truth is exact: what a short test says, and what the long run brings.

Users live in a small finite state (``level`` of engagement, ``fatigue``, ``plan``; where the setting has them
``novelty`` and ``weekday``). Each day, given the arm, a user earns ``revenue`` (and ``visits``, and the guardrail
``complaints``) and moves. Control is A, the treatment B, and C is B at half its dose.

    world = engagement.make("wear-out")                    # or make("wear-out", hidden="fatigue")
    table = engagement.draw(world, users=2000, days=14, seed=0)      # a pyarrow Table, one row per user and day
    engagement.naive(world, days=14)                       # the expectation of the naive difference B − A, +.04
    engagement.effect(world)                               # the long-run difference, −.03
    engagement.effect(world, estimand=Estimand("discounted", gamma=0.95))
    engagement.value(world, "B"), engagement.value(world, {"A": 0.5, "B": 0.5})
    engagement.by_day(world, "B", days=60)                 # expected revenue on each day after entering

Worlds, settings, designs, truth, draws and files of them each have a module here.
"""

from __future__ import annotations

from mixope.worlds.engagement.designs import Design
from mixope.worlds.engagement.drawing import draw
from mixope.worlds.engagement.settings import RECIPES, SETTINGS, Recipe, build, make
from mixope.worlds.engagement.truth import apparent, by_day, effect, naive, value
from mixope.worlds.engagement.world import Metric, World
from mixope.worlds.engagement.writing import Trial, write, write_dataset

__all__ = [
    "RECIPES",
    "SETTINGS",
    "Design",
    "Metric",
    "Recipe",
    "Trial",
    "World",
    "apparent",
    "build",
    "by_day",
    "draw",
    "effect",
    "make",
    "naive",
    "value",
    "write",
    "write_dataset",
]
