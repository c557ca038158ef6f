"""What is asked: targets and loggers' policies as the user gave them, made to fit the logs; the estimand; the level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from mixope.base.arrays import is_number, is_whole
from mixope.base.errors import Advice, DataError, MixopeError, Setting, UsageError, about
from mixope.base.estimand import Estimand, Kind
from mixope.logs import Logs, StateColumns, read
from mixope.policies import LoggedColumn, Policy, TabularPolicy, on_columns, on_recorded, read_policy, with_names
from mixope.solvers.devices import Device


@dataclass(frozen=True)
class Question:
    """One target under one estimand, at one level. ``loggers`` are the policies that are known."""

    name: str
    target: Policy
    estimand: Estimand
    loggers: Mapping[str, Policy]
    level: float
    seed: int
    device: Device = "auto"
    """Where networks are trained, for an estimator that has any."""


def ask(
    logs: Logs,
    labels: Sequence[str],
    targets: Mapping[str, Any],
    *,
    estimand: Estimand,
    loggers: Mapping[str, Any] | None = None,
    level: float = 0.95,
    seed: int = 0,
    device: Device = "auto",
    columns: StateColumns | None = None,
) -> list[Question]:
    """One question per target; every policy is resolved once, and a label without rows is refused.

    ``columns`` says what the numbers of mixed states mean, so that policies see them by name.
    """
    check_level(level)
    known = known_policies(loggers, logs, labels, columns)
    questions = []
    for name, policy in by_name("targets", targets).items():
        with about(target_named(name)) if len(targets) > 1 else nullcontext():
            resolved = resolve_policy(policy, logs, columns)
        questions.append(Question(name, resolved, estimand, known, level, seed, device))
    return questions


def target_named(name: str) -> str:
    """How messages call one of several targets."""
    return f"target {name!r}"


AS_CLASSES = Advice("if they are a few classes, such as doses, say so: ", Setting("roles", {"action": "id"}))


@contextmanager
def naming_targets(questions: Sequence[Question]) -> Iterator[None]:
    """Inside, an error of a target's policy names the target if there are several."""
    targets = {question.name: question.target for question in questions}
    try:
        yield
    except MixopeError as error:
        names = [name for name, target in targets.items() if target.fingerprint() == error.policy]
        if names and len(targets) > 1:
            error.about(" and ".join(map(target_named, names)))
        raise


def as_logs(logs: Any) -> Logs:
    """Logs as they are, or read from whatever names them."""
    return logs if isinstance(logs, Logs) else read(logs)


def resolve_policy(policy: Any, logs: Logs, columns: StateColumns | None = None) -> Policy:
    """Any policy source; columns of tables in the order of the logs, those of states by name.

    Where states have their past beside them, the policy knows them as they were logged.
    """
    if logs.past is not None:
        known = logs.recorded
        mixed = columns is not None and known.schema.observation_kind == "mixed"
        own = columns.first(len(known.schema.observation)) if columns is not None and mixed else None
        return on_recorded(resolve_policy(policy, known, own), known.schema)
    found = read_policy(policy, logs=logs)
    if isinstance(found, LoggedColumn):
        return found.on(logs)
    if columns is not None:
        return on_columns(found, columns)
    real = [
        what
        for what, kind in (("states", logs.schema.observation_kind), ("actions", logs.schema.action_kind))
        if kind in {"vector", "continuous"}
    ]
    if real and isinstance(found, TabularPolicy):
        raise DataError(
            f"the {real[0]} of these logs are real numbers; a table can only hold ids",
            where=logs.name,
            expected="a policy that answers for any vector: a function, a classifier, a network or a GaussianPolicy",
            got=f"a table of {found!r}",
            hint=AS_CLASSES if real == ["actions"] else "if the numbers are ids, store them as integers",
        )
    names = tuple(column.partition(".")[2] for column in logs.schema.observation)
    if logs.schema.observation_kind == "factors" and getattr(found, "factors", None):
        ordered: Policy = found.in_factor_order(names)  # type: ignore[attr-defined]
        return ordered
    return with_names(found, names)


def by_name(what: str, policies: Any) -> Mapping[str, Any]:
    """Policies by their names; without names, results could not be told apart."""
    if not isinstance(policies, Mapping):
        kind = type(policies).__name__
        raise UsageError(f"{what} are policies by name, such as {{'new': 'new.csv'}}, got an object of type {kind}")
    return policies


def known_policies(
    loggers: Mapping[str, Any] | None, logs: Logs, labels: Sequence[str], columns: StateColumns | None = None
) -> dict[str, Policy]:
    """The loggers' policies; one for a logger that wrote no row is a misspelt label."""
    given = by_name("loggers", {} if loggers is None else loggers)
    known = {str(label): resolve_policy(policy, logs, columns) for label, policy in given.items()}
    strangers = [label for label in known if label not in labels]
    if strangers:
        raise UsageError(f"no rows belong to logger {strangers[0]!r}; the logs know {', '.join(map(repr, labels))}")
    return known


LARGEST_SEED = 2**64 - 1


def check_seed(seed: int) -> None:
    """A whole number of 64 bits, which every generator takes as it is."""
    if not is_whole(seed) or not 0 <= seed <= LARGEST_SEED:
        raise UsageError(f"seed must be a whole number from 0 to {LARGEST_SEED} (64 bits), got {seed!r}")


def check_level(level: float) -> None:
    """0.95, never 95 or 0.05."""
    if not is_number(level) or not 0.0 < level < 1.0:
        raise UsageError(f"level must lie between 0 and 1, got {level!r}; 0.95 is usual")


def as_estimand(estimand: Kind | Estimand, gamma: float | None, horizon: int | None) -> Estimand:
    """A named estimand with its parameter; gamma or horizon alone name theirs."""
    if isinstance(estimand, Estimand):
        if gamma is not None or horizon is not None:
            raise UsageError("give gamma and horizon inside the Estimand, or the estimand by name")
        return estimand
    if estimand == "average" and gamma is not None and horizon is None:
        estimand = "discounted"
    if estimand == "average" and horizon is not None and gamma is None:
        estimand = "horizon"
    return Estimand(estimand, gamma, horizon)
