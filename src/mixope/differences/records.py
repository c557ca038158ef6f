"""What a comparison of targets says: all estimates, every pair, every target against every logger, and the places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mixope.answers.estimate import Estimate
from mixope.base.estimand import Estimand
from mixope.base.rendering import Record, ReportedRecord, Rows
from mixope.distributions import Returns
from mixope.uncertainty import Difference, Interval, probability_words

MOST_LISTED = 12
"""Targets or pairs that a sentence names."""


@dataclass(frozen=True)
class Rank:
    """One target's place: 1 is the best.

    ``place`` is by the value. ``low`` and ``high`` are the places that it may have; they hold for all targets together
    at the level. ``may_be_best`` marks those that cannot be told apart from the best: the best is one of them at the
    level. ``places`` is the probability of each place; of many targets, of the first twelve. ``joint`` is an interval
    of the value that holds together with those of all other targets. What is not known is None; ``note`` says why.
    """

    target: str
    value: float
    place: int | None = None
    standard_error: float | None = None
    interval: Interval | None = None
    joint: Interval | None = None
    probability_best: float | None = None
    expected_rank: float | None = None
    low: int | None = None
    high: int | None = None
    may_be_best: bool | None = None
    places: tuple[float, ...] = ()
    note: str | None = None

    @property
    def span(self) -> str:
        """The places it may have; a dash where that is not known."""
        if self.low is None:
            return "–"
        return f"{self.low}" if self.low == self.high else f"{self.low}–{self.high}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        spans = {name: found.to_dict() if found else None for name, found in _spans(self).items()}
        return {**asdict(self), **spans}

    def row(self) -> dict[str, Any]:
        """One line of a table; the probabilities of places are in the JSON."""
        own = {name: found for name, found in asdict(self).items() if name not in ("interval", "joint", "places")}
        for prefix, found in (("", self.interval), ("joint_", self.joint)):
            own |= {f"{prefix}low": found.low if found else None, f"{prefix}high": found.high if found else None}
        return {**own, "best_place": self.low, "worst_place": self.high}


def _spans(rank: Rank) -> dict[str, Interval | None]:
    return {"interval": rank.interval, "joint": rank.joint}


@dataclass(frozen=True)
class Regret:
    """What is lost against the best of ``of`` targets if the ``k`` with the highest values are taken.

    It is the value of the best of all less that of the best of those taken. ``expected`` is its mean given these
    estimates, ``bound`` is not exceeded at the level, whichever target is the best.
    """

    k: int
    of: int
    targets: tuple[str, ...]
    expected: float
    bound: float
    level: float

    @property
    def sentence(self) -> str:
        """What to take, and what that costs."""
        names, at = _joined(self.targets), f"at level {self.level:.4g}"
        if self.k == self.of:
            return f"take {names}: nothing else is ranked" if self.k == 1 else f"take all {self.k}: nothing is lost"
        whole, one = f"the best of the {self.of} ranked", self.k == 1
        if self.bound == 0.0:
            return f"take {names}: {f'it is {whole}' if one else f'{whole} is one of them'} {at}"
        within = f"{'it' if one else 'the best of them'} is within {self.bound:.3g} of {whole} {at}"
        return f"take {names}: {within}, and {self.expected:.3g} is lost on average"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Selection(Record):
    """Which targets to take: the place of every target, best first, and what is lost if the first few are taken.

    Targets that are not ranked stand last, by their values.
    """

    estimator: str
    level: float
    ranks: tuple[Rank, ...]
    regret: tuple[Regret, ...] = ()
    alerts: tuple[str, ...] = ()

    @property
    def ranked(self) -> tuple[Rank, ...]:
        """Those that have a place."""
        return tuple(found for found in self.ranks if found.place is not None)

    @property
    def contenders(self) -> tuple[str, ...]:
        """Those that cannot be told apart from the best."""
        return tuple(found.target for found in self.ranks if found.may_be_best)

    @property
    def losses(self) -> tuple[Regret, ...]:
        """Regret as far as there is something to lose: up to the first that leaves nothing."""
        enough = next((found.k for found in self.regret if found.bound == 0.0), MOST_LISTED)
        return tuple(found for found in self.regret if found.k <= enough and found.k < found.of)

    @property
    def summary(self) -> str:
        """The places in one sentence."""
        refused = [f"{found.target} ({found.note})" for found in self.ranks if found.place is None]
        apart = f"; not ranked: {_listed(refused)}" if refused else ""
        return f"{_placed(self)}{apart}"

    @property
    def advice(self) -> tuple[str, ...]:
        """What is lost if one is taken; and the fewest to take so that the least is lost."""
        fewest = sorted(self.losses, key=lambda found: (found.bound, found.k))
        return tuple(dict.fromkeys(found.sentence for found in (*self.losses[:1], *fewest[:1])))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        record: dict[str, Any] = {
            "estimator": self.estimator,
            "level": self.level,
            "ranks": [found.to_dict() for found in self.ranks],
            "contenders": list(self.contenders),
            "regret": [found.to_dict() for found in self.regret],
            "alerts": list(self.alerts),
        }
        return self._written(record)

    def tables(self) -> dict[str, Rows]:
        """One row per target, and one per number of targets that are taken."""
        return {
            "ranks": [found.row() for found in self.ranks],
            "regret": [found.to_dict() for found in self.regret],
        }


def _placed(selection: Selection) -> str:
    """Who is best and how certain that is, and the places."""
    found = selection.ranked
    if not found:
        return "no target can be ranked"
    best = found[0]
    if len(found) == 1:
        return f"{best.target} is the only target that is ranked"
    sure = [rank for rank in found if rank.low is not None]
    if len(sure) < 2:
        return f"by value alone, without knowing how certain that is: {_listed([rank.target for rank in found])}"
    first = [rank.target for rank in sure if rank.place == sure[0].place]
    leads = "is best" if len(first) == 1 else "share the first place, each of them the best"
    chance = f"{_joined(first)} {leads} with probability {probability_words(sure[0].probability_best or 0.0)}"
    return f"{chance}; places at level {selection.level:.4g}: {_listed([f'{r.target} ({r.span})' for r in sure])}"


@dataclass(frozen=True)
class Differences(Record):
    """Pairs of targets, the places of the targets, and every target less what each logger earned.

    ``compared`` says which pairs there are: all of them, or, of many targets, the best less each of the others.
    """

    estimator: str
    estimand: Estimand
    level: float
    n_episodes: int
    pairs: tuple[Difference, ...]
    selection: Selection
    loggers: tuple[Difference, ...] = ()
    alerts: tuple[str, ...] = ()
    compared: Literal["all pairs", "with the best"] = "all pairs"

    def __getitem__(self, key: tuple[str, str]) -> Difference:
        """By (first, second), in the order in which the targets were given; the second may be a logger.

        Of many targets the first is the best.
        """
        for pair in (*self.pairs, *self.loggers):
            if (pair.first, pair.second) == key:
                return pair
        known = _listed([f"({p.first!r}, {p.second!r})" for p in (*self.pairs, *self.loggers)])
        ask = "" if self.compared == "all pairs" else "; all pairs are made with all_pairs=True"
        raise KeyError(f"no difference for {key!r}; there are {known}{ask}")

    @property
    def summary(self) -> str:
        """The places in one sentence."""
        return self.selection.summary

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        record: dict[str, Any] = {
            "estimator": self.estimator,
            "estimand": {k: v for k, v in asdict(self.estimand).items() if v is not None},
            "level": self.level,
            "n_episodes": self.n_episodes,
            "compared": self.compared,
            "pairs": [pair.to_dict() for pair in self.pairs],
            "ranks": [found.to_dict() for found in self.selection.ranks],
            "regret": [found.to_dict() for found in self.selection.regret],
            "loggers": [pair.to_dict() for pair in self.loggers],
            "alerts": list(self.alerts),
        }
        return self._written(record)

    @classmethod
    def fields_of_json(cls, written: Mapping[str, Any]) -> dict[str, Any]:
        """The fields; of the selection the places and the losses are written."""
        names = ("estimator", "level", "ranks", "regret")
        return {"selection": {name: written[name] for name in names if name in written}, **written}

    def tables(self) -> dict[str, Rows]:
        """One row per pair, per target and logger, and per target."""
        return {
            "pairs": [pair.row() for pair in self.pairs],
            "loggers": [pair.row() for pair in self.loggers],
            "ranks": [found.row() for found in self.selection.ranks],
        }


@dataclass(frozen=True)
class Comparison(ReportedRecord):
    """Several targets and estimators on the same logs.

    ``differences`` has one record per estimator with scores, ``selections`` one per estimator: which targets to take.
    ``risk`` is how the returns of episodes are spread under every target, where that was asked for; where it cannot be
    said, ``no_risk_because`` has the reason.
    """

    estimates: tuple[Estimate, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    differences: tuple[Differences, ...] = ()
    selections: tuple[Selection, ...] = ()
    risk: Returns | None = None
    no_risk_because: str | None = None

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __getitem__(self, key: tuple[str, str]) -> Estimate:
        """By (target, estimator)."""
        for estimate in self.estimates:
            if (estimate.target, estimate.estimator) == key:
                return estimate
        known = ", ".join(f"({e.target!r}, {e.estimator!r})" for e in self.estimates)
        raise KeyError(f"no estimate for {key!r}; there are {known}")

    def to_dict(self) -> dict[str, Any]:
        """One entry per estimate; ``ranks`` and ``regret`` are by the first estimator."""
        selections = [found.to_dict() for found in self.selections]
        record: dict[str, Any] = {
            "estimates": [e.to_dict() for e in self.estimates],
            "differences": [found.to_dict() for found in self.differences],
            "ranks": selections[0]["ranks"] if selections else [],
            "regret": selections[0]["regret"] if selections else [],
            "selections": selections,
            "skipped": [{"estimator": name, "reason": reason} for name, reason in self.skipped],
            "risk": self.risk.to_dict() if self.risk else None,
            "no_risk_because": self.no_risk_because,
        }
        return self._written(record)

    @classmethod
    def fields_of_json(cls, written: Mapping[str, Any]) -> dict[str, Any]:
        """The fields; differences share the selection of their estimator."""
        chosen: dict[str, Any] = {}
        _each(written.get("selections"), lambda found: chosen.setdefault(str(found.get("estimator")), found))

        def with_selection(found: dict[str, Any]) -> dict[str, Any]:
            mine = chosen.get(str(found.get("estimator")))
            return found if mine is None else {**found, "selection": mine}

        return {
            **written,
            "differences": _each(written.get("differences", []), with_selection),
            "skipped": _each(written.get("skipped", []), lambda found: [found.get("estimator"), found.get("reason")]),
        }

    def tables(self) -> dict[str, Rows]:
        """One row per estimate, check, logger, pair of targets, place, and amount of the returns."""
        parts = [found.tables() for found in self.estimates]
        return {
            "estimates": [found.summary() for found in self.estimates],
            **{name: [row for part in parts for row in part[name]] for name in ("checks", "loggers")},
            "differences": _by_estimator(self.differences, "pairs"),
            "ranks": _by_estimator(self.selections, "ranks"),
            "risk": self.risk.tables()["amounts"] if self.risk else [],
        }

    def to_pandas(self) -> Any:
        """The estimates as a pandas data frame (pandas must be installed)."""
        return self.to_arrow().to_pandas()


def _by_estimator(parts: Sequence[Differences] | Sequence[Selection], name: str) -> Rows:
    """The same table of every estimator, one below the other."""
    return [{"estimator": part.estimator, **row} for part in parts for row in part.tables()[name]]


def _each(found: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    """The objects of a list in JSON, changed; anything else is left as it is for whoever restores it to refuse."""
    return [change(each) if isinstance(each, dict) else each for each in found] if isinstance(found, list) else found


def _listed(names: Sequence[str]) -> str:
    """All of them, or the first and how many there are besides."""
    rest = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {rest:,} more" if rest > 0 else "")


def _joined(names: Sequence[str]) -> str:
    """a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
