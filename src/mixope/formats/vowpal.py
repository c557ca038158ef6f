"""Decisions as Vowpal Wabbit logs them (``--dsjson``): one line per decision, with its cost and its probability.

    {"_label_cost": -1, "_label_probability": 0.8, "_label_Action": 2, "_labelIndex": 1, "EventId": "13c3", "a": [2, 1],
     "c": {"User": {"tier": "pro"}, "_multi": [{"_tag": "news"}, {"_tag": "sports"}]}, "p": [0.8, 0.2],
     "VWState": {"m": "model-7"}}

Each line is an episode of one step, which ends. The reward is minus the cost; the state is what all actions share, one
column per feature, ``observation.User.tier``; an action is called by its ``_tag``, or else by its features; the model
is the logger. Where lines offer different actions, the offer is a column of the state. A feature that a line lacks is
0, as in Vowpal Wabbit; a word that it lacks is the word ``(absent)``. Rows are held in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mixope.base.errors import DataError
from mixope.logs.provenance import hash_file
from mixope.logs.sources import Piece, outside
from mixope.logs.sources.arrays import table_of_arrays
from mixope.logs.sources.arrow import ArrowTable
from mixope.logs.sources.formats import Format
from mixope.logs.sources.lines import objects_of
from mixope.logs.sources.marks import COST
from mixope.logs.sources.stores import Store, here

CHANCE, INDEX = "_label_probability", "_labelIndex"
ABSENT = "(absent)"
NO_CONTEXT = "no context"
MOST = 2_000
"""Features of a state."""
LEFT_OUT = {
    "dangling": "holds a reward without its decision",
    "unlabelled": "has no cost",
    "inactive": "is marked as not shown (_skipLearn)",
}
"""Lines that are no rows, and why."""
OTHER = {"_outcomes": "several decisions per line (CCB, slates)", "_label_ca": "continuous actions (CATS)"}
"""Lines of other problems, by the key that tells them."""


@dataclass
class Decisions:
    """What was read so far: a list per column, and what is to be said of the lines."""

    path: str
    columns: dict[str, list[Any]] = field(default_factory=dict)
    states: list[dict[str, Any]] = field(default_factory=list)
    offers: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    features: dict[str, str] = field(default_factory=dict)
    """Of each action that has a tag."""
    changing: bool = False
    unrewarded: int = 0
    """Lines for which no reward came, so that they have the default cost."""
    dropped: set[float] = field(default_factory=set)
    """With which probability lines were left out when the log was written."""

    def take(self, number: int, line: Mapping[str, Any]) -> None:
        """One line more."""
        where = f"{self.path}, line {number}"
        _refuse_other(line, where)
        reason = _left_out(line)
        if reason is not None:
            self.left_out[reason] += 1
            return
        context = line["c"]
        names = self._names(context, where)
        chosen = _chosen(line, len(names), where)
        model = line.get("VWState")
        row = {
            "episode_id": line.get("EventId"),
            "action": names[chosen],
            "reward": -_number(line, COST, where),
            "action_prob": _number(line, CHANCE, where) if CHANCE in line else None,
            "policy_id": model.get("m") if isinstance(model, dict) else None,
        }
        for name, value in row.items():
            self.columns.setdefault(name, []).append(value)
        shared = {key: value for key, value in context.items() if not key.startswith("_") or key == "_text"}
        self.states.append(dict(_flat(shared, ())))
        self.offers.append("|".join(names))
        self.unrewarded += not line.get("o")
        self.dropped.add(float(line["pdrop"]) if isinstance(line.get("pdrop"), int | float) else 0.0)

    def _names(self, context: Mapping[str, Any], where: str) -> list[str]:
        """What the actions of a line are called."""
        offered = context.get("_multi")
        if not isinstance(offered, list) or not offered or not all(isinstance(each, dict) for each in offered):
            raise _wrong("A decision offers no actions", where, expected="a list of objects, c._multi")
        names = []
        for each in offered:
            features = ",".join(f"{name}={value}" for name, value in _flat(each, ()))
            tag = each.get("_tag")
            if tag is not None:
                self.changing |= self.features.setdefault(str(tag), features) != features
            names.append(features if tag is None else str(tag))
        twice = next((name for name, n in Counter(names).items() if n > 1), None)
        if twice is not None:
            hint = 'give each action of a line a name of its own: "_tag"'
            raise _wrong("Two actions of a decision cannot be told apart", where, got=twice or "no features", hint=hint)
        return names

    def table(self, before: int = 0) -> Any:
        """All rows as a table; where they have no names, they are numbered after those ``before``."""
        if not self.states:
            expected = f"lines with {COST!r} and 'c'"
            raise DataError("The file has no decisions", where=self.path, expected=expected, got=_listed(self.left_out))
        columns = {name: values for name, values in self.columns.items() if any(v is not None for v in values)}
        rows = len(self.states)
        columns |= {"step": [0] * rows, "terminated": [True] * rows}
        columns.setdefault("episode_id", list(range(before, before + rows)))
        for name in ("episode_id", "policy_id"):
            if name in columns:
                columns[name] = [None if value is None else str(value) for value in columns[name]]
        return table_of_arrays({**columns, **self._state()}, self.path)

    def _state(self) -> dict[str, list[Any]]:
        names = dict.fromkeys(name for state in self.states for name in state)
        if len(names) > MOST:
            hint = "write fewer features, or put words into one: {'user': 'Tom'} instead of {'user=Tom': 1}"
            raise DataError("The states have too many features", where=self.path, got=len(names), hint=hint)
        found = {f"observation.{name}": _column([state.get(name) for state in self.states]) for name in names}
        if len(set(self.offers)) > 1:
            found["observation.offered"] = list(self.offers)
        return found or {"observation": [NO_CONTEXT] * len(self.states)}

    def notes(self) -> tuple[str, ...]:
        """What was left out and assumed, in sentences."""
        notes = []
        for reason, n in self.left_out.items():
            notes.append(f"{n:,} of the lines {'is' if n == 1 else 'are'} not read: each {LEFT_OUT[reason]}")
        if 0 < self.unrewarded < len(self.states):
            notes.append(
                f"for {self.unrewarded:,} of {len(self.states):,} decisions no reward came; they have the default cost"
            )
        if len(set(self.offers)) > 1:
            notes.append("lines offer different actions; the offer is the column 'offered' of the state")
        if self.changing:
            notes.append("the features of an action change from line to line; they are not part of the state")
        return tuple(f"{self.path}: {note}" for note in notes)


def open_decisions(
    paths: Sequence[str], constants: Mapping[str, str | int], store: Store | None = None
) -> Iterator[Piece]:
    """One piece per file; decisions without a name are numbered on from file to file."""
    before = 0
    for path in paths:
        place = here(path, store)
        found = read_decisions(objects_of(place, path), path)
        table = found.table(before)
        before += table.num_rows
        missing = outside(constants, table.column_names)
        yield ArrowTable(table, (path,), missing, hash_file(place), notes=found.notes())


def read_decisions(lines: Iterable[tuple[int, Mapping[str, Any]]], path: str) -> Decisions:
    """All decisions of a log, which come with the numbers of their lines."""
    found = Decisions(path)
    for number, line in lines:
        try:
            found.take(number, line)
        except (OverflowError, RecursionError) as error:
            raise _wrong("A line cannot be read", f"{path}, line {number}", got=str(error)) from error
    if len(found.dropped) > 1:
        raise DataError(
            "Lines were left out of the log with different probabilities, so that some stand for more than others",
            where=path,
            column="pdrop",
            expected="one probability for all lines",
            got=", ".join(str(each) for each in sorted(found.dropped)[:3]),
            hint="read the lines of each probability by themselves",
        )
    return found


def _refuse_other(line: Mapping[str, Any], where: str) -> None:
    context = line.get("c")
    slots = isinstance(context, dict) and "_slots" in context
    key = "_outcomes" if slots else next((key for key in OTHER if key in line), None)
    if key is not None:
        raise _wrong(
            f"The log is of {OTHER[key]}",
            where,
            expected="one decision per line, among actions that are listed in c._multi",
            hint="write one line per decision, with the slots before it among the features",
        )


def _left_out(line: Mapping[str, Any]) -> str | None:
    if not isinstance(line.get("c"), dict):
        return "dangling"
    if line.get("_skipLearn") is True:
        return "inactive"
    return None if COST in line else "unlabelled"


def _chosen(line: Mapping[str, Any], offered: int, where: str) -> int:
    """The position of the action that was taken."""
    index = line.get(INDEX)
    if index is None and isinstance(line.get("_label_Action"), int):
        index = line["_label_Action"] - 1
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < offered:
        expected = f"a whole number from 0 to {offered - 1}"
        raise _wrong("The action that was taken is not one of those offered", where, INDEX, expected, repr(index))
    return index


def _number(line: Mapping[str, Any], key: str, where: str) -> float:
    value = line[key]
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong("A label is no number", where, key, "a number", repr(value)[:80])
    return float(value)


def _flat(value: Any, way: tuple[str, ...]) -> Iterator[tuple[str, str | int | float]]:
    """The features in an object, each with its name; what begins with _ is no feature, nor is null."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not key.startswith("_") or key == "_text":
                yield from _flat(inner, (*way, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _flat(inner, way if isinstance(inner, dict) else (*way, str(position)))
    elif value is not None:
        yield ".".join(way), int(value) if isinstance(value, bool) else value


def _column(values: Sequence[Any]) -> list[Any]:
    """The values of a feature: words if one of them is, else numbers."""
    if any(isinstance(value, str) for value in values):
        return [ABSENT if value is None else str(value) for value in values]
    return [0 if value is None else value for value in values]


def _listed(left_out: Mapping[str, int]) -> str:
    return "; ".join(f"{n:,} of which each {LEFT_OUT[reason]}" for reason, n in left_out.items()) or "no lines"


def _wrong(
    problem: str,
    where: str,
    column: str | None = None,
    expected: str | None = None,
    got: object | None = None,
    hint: str | None = None,
) -> DataError:
    return DataError(problem, where=where, column=column, expected=expected, got=got, hint=hint)


FORMAT = Format("dsjson", (".dsjson", ".dsjson.gz"), open_decisions)
