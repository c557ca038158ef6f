"""What the pictures of a report show, as numbers: a few points each, however long the logs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Grown:
    """The value after the first ``episodes`` of them, with its interval."""

    episodes: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ReturnBar:
    """How many episodes earned from ``low`` up to ``high``; the last bar holds its upper end too."""

    low: float
    high: float
    episodes: int


@dataclass(frozen=True)
class Visit:
    """A state, its share of the logged rows, and of the steps of the target."""

    state: tuple[int | float | str, ...]
    logged: float
    target: float


@dataclass(frozen=True)
class Visits:
    """The states that are visited most, by the logs or by the target, out of all ``n_states``."""

    factors: tuple[str, ...]
    states: tuple[Visit, ...]
    n_states: int

    @property
    def others(self) -> Visit:
        """What is left for all other states."""
        rest = (1.0 - sum(found.logged for found in self.states), 1.0 - sum(found.target for found in self.states))
        return Visit((), *rest)


@dataclass(frozen=True)
class ReliabilityBin:
    """Actions with about the same probability: how often they were taken, and by how much chance moves that."""

    predicted: float
    observed: float
    standard_error: float
    choices: float


@dataclass(frozen=True)
class Reliability:
    """Probabilities of actions against how often these were taken; ``of`` says whose probabilities they are."""

    of: str
    bins: tuple[ReliabilityBin, ...]


@dataclass(frozen=True)
class ReplayedMean:
    """What the counts say that some logged rows earn per step, what these earned, and the error of the difference."""

    rows: str
    predicted: float
    seen: float
    standard_error: float


@dataclass(frozen=True)
class Pictures:
    """All that there is of one estimate; what is empty or None was not to be had."""

    growth: tuple[Grown, ...] = ()
    returns: tuple[ReturnBar, ...] = ()
    visits: Visits | None = None
    reliability: Reliability | None = None
    replay: tuple[ReplayedMean, ...] = ()
