"""What is found by name: one table of names and places, filled by our own wings and by packages of others.

A place is ``module:attribute``. It is imported when its name is asked for, and the core imports no wing otherwise. A
package of others adds places of its own as entry points, which have the same form:

    [project.entry-points."mixope.formats"]
    fixed-width = "my_package.fixed_width:FORMAT"

===========  =====================================================================================
group        what the place holds
===========  =====================================================================================
estimators   an :class:`~mixope.estimators.Entry`
formats      a :class:`~mixope.logs.sources.formats.Format`
checks       a :class:`~mixope.checks.Check` of that name
policies     a :class:`~mixope.policies.kinds.Kind` of source
commands     a function with the annotations of Typer, a command of ``mixope``
===========  =====================================================================================

A name of our own cannot be taken: what a package adds under one is left out, with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mixope.base.errors import MixopeWarning, UnknownName, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

WINGS: dict[str, dict[str, str]] = {
    "adapters": {
        "d3rlpy_policy": "mixope.adapters.d3rlpy:d3rlpy_policy",
        "from_torch": "mixope.adapters.torch:from_torch",
        "onnx_policy": "mixope.adapters.onnx:onnx_policy",
        "sb3_policy": "mixope.adapters.sb3:sb3_policy",
    },
    "checks": {
        "backtest": "mixope.backtesting.records:BACKTEST",
        "coming back": "mixope.experiments.absences:COMING_BACK",
        "drift": "mixope.experiments.drift:DRIFT",
        "episodes in the tail": "mixope.distributions:TAIL",
        "history": "mixope.experiments.history:HISTORY",
        "later levels": "mixope.experiments.forecast:LATER_LEVELS",
        "later periods": "mixope.experiments.forecast:LATER_PERIODS",
        "leaving": "mixope.experiments.absences:LEAVING",
    },
    "commands": {},
    "estimators": {},
    "formats": {
        "d3rlpy": "mixope.formats.d3rlpy:FORMAT",
        "database": "mixope.formats.databases:FORMAT",
        "delta": "mixope.formats.delta:FORMAT",
        "dsjson": "mixope.formats.vowpal:FORMAT",
        "hdf5": "mixope.formats.hdf5:FORMAT",
        "huggingface": "mixope.formats.hugging:FORMAT",
        "iceberg": "mixope.formats.iceberg:FORMAT",
        "lerobot": "mixope.formats.lerobot:FORMAT",
        "minari": "mixope.formats.minari:FORMAT",
        "open-bandit": "mixope.formats.open_bandit:FORMAT",
        "rllib": "mixope.formats.rllib:FORMAT",
        "stable-baselines3": "mixope.formats.sb3_buffers:FORMAT",
    },
    "policies": {
        "d3rlpy": "mixope.adapters.d3rlpy:KIND",
        "onnx": "mixope.adapters.onnx:KIND",
        "sb3": "mixope.adapters.sb3:KIND",
        "torch": "mixope.adapters.torch:KIND",
    },
}
"""Group → name → the place in a wing of ours."""


_RESERVED: dict[str, frozenset[str]] = {}


def reserve(group: str, names: Iterable[str]) -> None:
    """Say which names of a group the core itself has, so that no package takes them."""
    _RESERVED[group] = frozenset(names)
    added.cache_clear()


@lru_cache(maxsize=8)
def added(group: str) -> dict[str, EntryPoint]:
    """What packages of others add to a group, by name."""
    from importlib.metadata import entry_points

    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=f"mixope.{group}"), key=lambda point: (point.name, point.value)):
        if point.name in WINGS[group] or point.name in _RESERVED.get(group, ()):
            what = f"{package_of(point)} adds {point.name!r} to the {group}, and that is the name of one of ours"
        elif point.name in found and found[point.name].value != point.value:
            what = (
                f"two packages add {point.name!r} to the {group}: {package_of(found[point.name])}, {package_of(point)}"
            )
        else:
            found[point.name] = point
            continue
        warnings.warn(f"{what}; it is left out", MixopeWarning, stacklevel=2)
    return found


def load(group: str, name: str) -> Any:
    """What stands at a place, imported now; an error that names the package where that fails."""
    place = WINGS[group].get(name)
    if place is not None:
        module, _, attribute = place.partition(":")
        return getattr(import_module(module), attribute)
    points = added(group)
    if name not in points:
        raise UnknownName(group.removesuffix("s"), name, [*WINGS[group], *points])
    try:
        return points[name].load()
    except Exception as error:  # code of others
        raise UsageError(
            f"{name!r} of {package_of(points[name])} cannot be loaded ({points[name].value}):"
            f" {type(error).__name__}: {error}. Update that package, or uninstall it."
        ) from error


def package_of(point: EntryPoint) -> str:
    """The package that an entry point belongs to, for messages."""
    return f"the package {point.dist.name} {point.dist.version}" if point.dist is not None else "a package"
