"""Names that a shell can complete, found when it asks for them. Each comes with a word of help where there is one."""

from __future__ import annotations

from collections.abc import Iterable


def estimators(incomplete: str) -> list[tuple[str, str]]:
    """All estimators, and when to use them."""
    from mixope.estimators import entries

    named = {"auto": "the default", **{name: entry.when for name, entry in entries().items()}}
    return [(name, when) for name, when in named.items() if name.startswith(incomplete)]


def estimators_or_all(incomplete: str) -> list[tuple[str, str]]:
    """The same, where all of them can be asked for at once."""
    every = [("all", "every estimator that applies")] if "all".startswith(incomplete) else []
    return [*estimators(incomplete), *every]


def engines(incomplete: str) -> list[str]:
    """All engines; clusters by the beginning of their address."""
    from mixope.engines import CLUSTERS, ENGINES

    return _beginning([*ENGINES, *(f"{kind}://" for kind in CLUSTERS)], incomplete)


def intervals(incomplete: str) -> list[str]:
    """All kinds of interval."""
    from mixope.uncertainty import INTERVALS

    return _beginning(INTERVALS, incomplete)


def environments(incomplete: str) -> list[str]:
    """What can be simulated."""
    from mixope.worlds import BUILDERS, CONTINUOUS

    return _beginning([*BUILDERS, *CONTINUOUS, "engagement"], incomplete)


def settings(incomplete: str) -> list[tuple[str, str]]:
    """The settings of a product experiment, and what they are about."""
    from mixope.worlds.engagement import SETTINGS, make

    return [(name, make(name).story) for name in SETTINGS if name.startswith(incomplete)]


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
