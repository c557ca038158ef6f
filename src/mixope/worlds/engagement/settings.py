"""The settings: product changes of which a short test says too much, too little, the wrong thing, or the truth.

All users move in the same way, and a treatment changes that by what its recipe says, times its dose (A 0, B 1, C ½):

    level     0–3, how engaged a user is      up by .12 + habit · dose, down by .06 + .12 fatigue
    fatigue   0–2, how worn out               up by .04 + wear · dose,  down by .12
    plan      free or paid, for ever
    novelty   2–0, how new the change is      down by fade · dose                (where the recipe has novelty)
    weekday   Mon … Sun                       on by one                          (where the recipe is seasonal)
    away      no or yes                       begins by .02 + leave · dose, ends by back   (where the recipe has back)

    revenue     .10 (free) or .20 (paid) + .10 level − .03 fatigue + (lift + fresh · novelty/2) · dose + season(weekday)
    visits      .5 + .6 level − .1 fatigue
    complaints  .01 + .03 fatigue + .01 dose

The last is a guardrail: less is better. A test starts with users who have always lived under control, so the control
does not change during it, and what changes in the treatment is the effect. A user who is away earns nothing, does not
change and has no row. All users are there when they enter, so that some of the control, too, are away later on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import numpy as np
from scipy import sparse

from mixope.base.arrays import AnyArray, FloatArray, IntArray
from mixope.base.errors import UnknownName
from mixope.worlds.engagement.world import Metric, World
from mixope.worlds.truth import PolicyChain, solve_chain

DOSES = MappingProxyType({"A": 0.0, "B": 1.0, "C": 0.5})
LEVELS, FATIGUES, NOVELTIES = 4, 3, 3
PLANS = ("free", "paid")
SHARES = (0.6, 0.4)
WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SEASON = np.array([-0.03, -0.02, -0.02, 0.0, 0.02, 0.06, 0.04])
WEEKEND = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.08, 0.08])
"""How much more likely a level is gained on these days."""
LEAVE = 0.02
"""How likely a user of the control stays away from the next day on, where anybody does."""


@dataclass(frozen=True)
class Recipe:
    """What full treatment changes, for free and paid users."""

    story: str
    lift: tuple[float, float] = (0.0, 0.0)
    habit: tuple[float, float] = (0.0, 0.0)
    wear: tuple[float, float] = (0.0, 0.0)
    fresh: float = 0.0
    fade: float = 0.0
    seasonal: bool = False
    leave: float = 0.0
    back: float = 0.0
    """The probability that a user who is away comes back on the next day; 0 where nobody goes away."""


RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        "lift": Recipe("It earns at once and changes nobody: a short test is right.", lift=(0.04, 0.04)),
        "novelty": Recipe(
            "It is liked while it is new: a short test says too much.", lift=(0.01, 0.01), fresh=0.1, fade=0.25
        ),
        "habit": Recipe(
            "People get used to coming back: a short test says too little.", lift=(0.01, 0.01), habit=(0.1, 0.1)
        ),
        "investment": Recipe(
            "It costs at once and brings people back: a short test says no, the long run yes.",
            lift=(-0.04, -0.04),
            habit=(0.1, 0.1),
        ),
        "wear-out": Recipe(
            "It earns at once and wears people out: a short test says yes, the long run no.",
            lift=(0.064, 0.064),
            wear=(0.1, 0.1),
        ),
        "opposite": Recipe(
            "It wears out free users and is a habit of paying ones: the mean hides both.",
            lift=(0.06, 0.01),
            habit=(0.0, 0.12),
            wear=(0.1, 0.0),
        ),
        "seasonal": Recipe(
            "Weekends earn more, and the change is worth the same on every day: a short test is right.",
            lift=(0.04, 0.04),
            seasonal=True,
        ),
        "null": Recipe("The arms do not differ."),
        "churn": Recipe(
            "It earns at once and drives people away, who have no rows then: those who come say yes, the long run no.",
            lift=(0.08, 0.08),
            leave=0.05,
            back=0.1,
        ),
    }
)


@dataclass(frozen=True, eq=False)
class _Grid:
    """All combinations of the factors, one per state; the last changes fastest."""

    level: IntArray
    fatigue: IntArray
    plan: IntArray
    novelty: IntArray
    weekday: IntArray
    away: IntArray

    def columns(self, recipe: Recipe) -> dict[str, AnyArray]:
        """As they are recorded."""
        level, fatigue, novelty = (factor.astype(np.int8) for factor in (self.level, self.fatigue, self.novelty))
        found: dict[str, AnyArray] = {"level": level, "fatigue": fatigue, "plan": np.array(PLANS)[self.plan]}
        if recipe.fade:
            found["novelty"] = novelty
        return {**found, "weekday": np.array(WEEK)[self.weekday]} if recipe.seasonal else found


def build(name: str, recipe: Recipe) -> World:
    """The users of a recipe."""
    novelties, days = NOVELTIES if recipe.fade else 1, len(WEEK) if recipe.seasonal else 1
    sides = (LEVELS, FATIGUES, len(PLANS), novelties, days, 2 if recipe.back else 1)
    grid = _Grid(*(index.ravel() for index in np.indices(sides)))
    transition = np.stack([_moves(grid, recipe, dose) for dose in DOSES.values()])
    return World(
        name=name,
        story=recipe.story,
        arms=tuple(DOSES),
        columns=MappingProxyType(grid.columns(recipe)),
        transition=transition,
        metrics=MappingProxyType(_metrics(grid, recipe)),
        start=_steady(grid, transition[0]),
        away=grid.away > 0,
    )


def _moves(grid: _Grid, recipe: Recipe, dose: float) -> FloatArray:
    """P(s′ | s) at a dose: factors move independently of each other, given the state."""
    habit, wear = np.array(recipe.habit)[grid.plan], np.array(recipe.wear)[grid.plan]
    weekend = WEEKEND[grid.weekday] if recipe.seasonal else 0.0
    days, fatigue = int(grid.weekday.max()) + 1, grid.fatigue.astype(np.float64)
    anyhow = (grid.plan[:, None] == grid.plan) * ((grid.weekday[:, None] + 1) % days == grid.weekday)
    lives = (
        _steps(grid.level, 0.12 + habit * dose + weekend, 0.06 + 0.12 * fatigue)
        * _steps(grid.fatigue, 0.04 + wear * dose, np.full(len(wear), 0.12))
        * _steps(grid.novelty, np.zeros(len(wear)), np.full(len(wear), recipe.fade * dose))
    )
    if not recipe.back:
        return np.asarray(lives * anyhow)
    rests = np.prod([factor[:, None] == factor for factor in (grid.level, grid.fatigue, grid.novelty)], axis=0)
    leaves, returns = np.full(len(wear), LEAVE + recipe.leave * dose), np.full(len(wear), recipe.back)
    here = (grid.away[:, None] == 0) & (grid.away == 0)
    return np.asarray(np.where(here, lives, rests) * anyhow * _steps(grid.away, leaves, returns))


def _steps(factor: IntArray, up: FloatArray, down: FloatArray) -> FloatArray:
    """The probability that a factor moves by one, or stays; it cannot leave its range."""
    rises, falls = np.where(factor < factor.max(), up, 0.0), np.where(factor > 0, down, 0.0)
    change = factor - factor[:, None]
    law = {1: rises, -1: falls, 0: 1 - rises - falls}
    return np.asarray(sum((change == by) * chance[:, None] for by, chance in law.items()), dtype=np.float64)


def _metrics(grid: _Grid, recipe: Recipe) -> dict[str, Metric]:
    dose = np.array(list(DOSES.values()))[:, None]
    newness = grid.novelty / (NOVELTIES - 1)
    gain = np.array(recipe.lift)[grid.plan] + recipe.fresh * newness
    season = SEASON[grid.weekday] if recipe.seasonal else 0.0
    revenue = np.array([0.10, 0.20])[grid.plan] + 0.10 * grid.level - 0.03 * grid.fatigue + gain * dose + season
    visits = 0.5 + 0.6 * grid.level - 0.1 * grid.fatigue + 0.0 * dose
    complaints = 0.01 + 0.03 * grid.fatigue + 0.01 * dose
    here = grid.away == 0
    return {
        "revenue": Metric(revenue * here),
        "visits": Metric(visits * here, "count"),
        "complaints": Metric(complaints * here, "event"),
    }


def _steady(grid: _Grid, control: FloatArray) -> FloatArray:
    """The laws of users who have always lived under control and are there, given the weekday: one row per weekday."""
    law = np.zeros(len(grid.plan))
    for plan, share in enumerate(SHARES):
        first = np.flatnonzero((grid.plan == plan) & (grid.novelty == grid.novelty.max()))[0]
        begin = np.eye(len(law))[first]
        law += share * solve_chain(PolicyChain(sparse.csr_array(control), np.zeros(len(law)), begin)).stationary
    by_day = law * (grid.away == 0) * (grid.weekday == np.arange(grid.weekday.max() + 1)[:, None])
    return np.asarray(by_day / by_day.sum(axis=1, keepdims=True))


SETTINGS: Mapping[str, Callable[[], World]] = MappingProxyType(
    {
        **{name: partial(build, name, recipe) for name, recipe in RECIPES.items()},
        "hidden": lambda: replace(
            build("hidden", replace(RECIPES["wear-out"], story="As wear-out, but nobody records the fatigue.")),
            hidden=("fatigue",),
        ),
    }
)
"""To add a setting: a recipe above, or a line here."""


def make(name: str, *, hidden: str | Sequence[str] = ()) -> World:
    """The setting of that name; ``hidden`` are state columns that its tables do not have."""
    if name not in SETTINGS:
        raise UnknownName("setting", name, SETTINGS)
    return SETTINGS[name]().hiding(hidden)


def world_of(setting: World | str) -> World:
    """A world, or the setting of that name."""
    return make(setting) if isinstance(setting, str) else setting
