"""How each source becomes canonical rows: which raw column, which element of it, and to which type.

A plan is decided once, from names and types alone, and then carried out twice: as SQL (``view``) and in NumPy
(``table``). All sources must agree on the kind of observations and actions and on the type of every id.

one column of ints or strings          id        observation
several, or lists of ints              factors   observation.cell, observation.taxi
floats: one column, several, or lists  vector    observation.0, observation.1, …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mixope.errors import Advice, DataError, Setting
from mixope.logs.database import connect
from mixope.logs.names import Assignment, assign, marks_of, missing, refuse_two_words
from mixope.logs.schema import ActionKind, ObservationKind, Schema, Type
from mixope.logs.sources import Piece, Source, field_in, quote, reading
from mixope.logs.types import ACCEPTED, EXPECTED, settle, unknown

FIXED: dict[str, Type] = {
    "policy_id": "string",
    "step": "int",
    "reward": "float",
    "terminated": "bool",
    "truncated": "bool",
    "propensity": "float",
}

MEASURED = ("reward", "propensity")
"""Notions that are numbers: true and false are not taken for 1 and 0."""

TRUSTED = ". Nothing tells whether rows are in the order in which they happened; in another one the value is another"

OPTIONAL = ("policy_id", "propensity")
"""Notions that some files of a source may lack: null there."""


@dataclass(frozen=True)
class Column:
    """One canonical column of one source: a raw column (None: absent), perhaps one element of its lists, and a type."""

    name: str
    type: Type
    raw: str | None
    item: int | None = None


@dataclass(frozen=True)
class Plan:
    """How one source becomes canonical rows. ``derived`` are the notions computed from other rows."""

    source: Source
    index: int
    columns: Mapping[str, Column]
    observation: tuple[str, ...]
    next_observation: tuple[str, ...]
    action: tuple[str, ...]
    derived: frozenset[str]
    log_propensity: bool
    marked: bool
    """Whether some column says how episodes end."""
    from_one: tuple[str, ...] = ()
    """Loggers that count their steps from one more than the others: one is taken off."""

    @property
    def keeps_all(self) -> bool:
        """Whether it is known without looking that no row will be dropped: each has a next observation or an end."""
        if "next_observation" not in self.derived:
            return all(self.knows(name, "null_free") for name in self.next_observation)
        return "terminated" in self.derived and all(self.knows(name, "null_free") for name in self.observation)

    @property
    def asks(self) -> bool:
        """Whether it hangs on how episodes end if their last rows can be used, and nothing says how they do."""
        silent = not self.marked and self.source.ends is None
        return silent and "next_observation" in self.derived and "episode_id" not in self.derived

    def knows(self, name: str, fact: Literal["null_free", "all_false"]) -> bool:
        """Whether every piece knows this of a column without looking; an absent flag is false throughout."""
        column = self.columns[name]
        if name in self.derived:
            return False
        if column.raw is None:
            return column.type == "bool"
        return column.item is None and all(_knows(piece, column, fact) for piece in self.source.pieces)


def _knows(piece: Piece, column: Column, fact: str) -> bool:
    found = None if column.raw is None else piece.fields.get(column.raw)
    if found is None or column.raw not in getattr(piece, fact):
        return False
    lossy = column.type == "int" and (found.kind == "float" or found.wide)  # the cast may give a null
    return fact != "null_free" or not lossy


@dataclass(frozen=True)
class Part:
    """One column of an observation or action: its name after the dot (None: whole), and where it is in the file."""

    suffix: str | None
    raw: str
    item: int | None = None

    def name(self, notion: str, kind: str) -> str:
        """The canonical name; a vector always has dotted names."""
        suffix = "0" if self.suffix is None and kind == "vector" else self.suffix
        return notion if suffix is None else f"{notion}.{suffix}"


@dataclass
class Draft:
    """One source while the plan is being made."""

    source: Source
    found: Mapping[str, Assignment]
    observation: list[Part] = field(default_factory=list)
    action: list[Part] = field(default_factory=list)
    observation_kind: ObservationKind = "id"
    action_kind: ActionKind = "discrete"


def make_plans(sources: Sequence[Source]) -> tuple[tuple[Plan, ...], Schema, tuple[str, ...]]:
    """The plans of all sources, the common schema, and notes for the user."""
    notes: list[str] = []
    drafts = []
    for source in sources:
        found, said = assign(source.names, source.name, source.columns, source.done)
        notes += (*source.notes, *said, *_leave_out_empty(found, source))
        _require(found, source)
        refuse_two_words(found, source.name, source.ends)
        drafts.append(Draft(source, found))
    for draft in drafts:
        _lay_out(draft)
        _agree(drafts[0], draft)
    types = _id_types(drafts)
    plans = tuple(_plan(draft, index, types) for index, draft in enumerate(drafts))
    for plan, draft in zip(plans, drafts, strict=True):
        notes += _notes_of(plan, draft)
    return plans, _schema_of(plans, drafts, types), tuple(dict.fromkeys(notes))


def _leave_out_empty(found: dict[str, Assignment], source: Source) -> list[str]:
    """A flag without a single value says nothing: it is absent, and a note says so."""
    empty = {
        notion: found[notion].columns[None]
        for notion in ("terminated", "truncated")
        if notion in found
        and all(field.kind == "null" for _, field in source.fields_in(found[notion].columns[None] or ""))
    }
    for notion in empty:
        del found[notion]
    return [f"{source.name}: column {raw!r} holds nothing and is left out" for raw in empty.values()]


def _require(found: Mapping[str, Assignment], source: Source) -> None:
    for notion in ("observation", "action", "reward"):
        if notion not in found:
            raise missing(notion, source.names, source.name, problem=f"The log has no column for the {notion}")


def _lay_out(draft: Draft) -> None:
    draft.observation = _expand(draft.found["observation"], "observation", draft.source)
    draft.observation_kind = _observation_kind(draft.observation, draft.source)
    draft.action = _expand(draft.found["action"], "action", draft.source)
    kinds = [settle(draft.source.fields_in(part.raw, part.item), part.raw) for part in draft.action]
    if "float" in kinds:
        draft.action_kind = "continuous"
    elif len(draft.action) > 1:
        raise DataError(
            "A discrete action is one column",
            where=draft.source.name,
            column=", ".join(dict.fromkeys(part.raw for part in draft.action)),
            hint="combine the columns into one id, for example a string",
        )


def _agree(first: Draft, other: Draft) -> None:
    """Observations and actions have the same shape in every source."""
    for notion in ("observation", "action"):
        mine, theirs = _shape(first, notion), _shape(other, notion)
        if mine != theirs:
            raise DataError(
                f"The sources disagree on the {notion}",
                where=f"{first.source.name} and {other.source.name}",
                column=notion,
                expected=mine,
                got=theirs,
                hint=Advice(
                    "read logs of the same problem together, or map the columns: ", Setting("columns", {...: ...})
                ),
            )


def _shape(draft: Draft, notion: str) -> str:
    kind = draft.observation_kind if notion == "observation" else draft.action_kind
    parts = draft.observation if notion == "observation" else draft.action
    return f"{kind} " + ", ".join(sorted(part.name(notion, kind) for part in parts))


def _id_types(drafts: Sequence[Draft]) -> dict[str, Type]:
    """The type of every observation, action and episode column, over all sources."""
    types: dict[str, Type] = dict(FIXED)
    for notion in ("observation", "action"):
        kind = drafts[0].observation_kind if notion == "observation" else drafts[0].action_kind
        for name in (part.name(notion, kind) for part in getattr(drafts[0], notion)):
            entries = [
                entry
                for draft in drafts
                for part in getattr(draft, notion)
                if part.name(notion, kind) == name
                for entry in draft.source.fields_in(part.raw, part.item)
            ]
            settled = settle(entries, name)
            types[name] = "float" if kind in {"vector", "continuous"} else settled
    given = [(d.source, d.found["episode_id"].columns[None]) for d in drafts if "episode_id" in d.found]
    entries = [entry for source, raw in given for entry in source.fields_in(raw)]
    settled = settle(entries, "episode_id") if entries else "int"
    types["episode_id"] = "int" if settled == "float" else settled
    return types


def _plan(draft: Draft, index: int, types: Mapping[str, Type]) -> Plan:
    found, source, kind = draft.found, draft.source, draft.observation_kind
    columns: dict[str, Column] = {}

    def add(name: str, type_: Type, raw: str | None, item: int | None = None) -> None:
        if raw is not None:
            _check(source, raw, item, type_, name)
        columns[name] = Column(name, type_, raw, item)

    for notion in ("policy_id", "episode_id", "step", "reward", "terminated", "truncated"):
        add(notion, types[notion], found[notion].columns[None] if notion in found else None)
    logp = "action_prob" not in found and "action_logp" in found
    chosen = found.get("action_logp" if logp else "action_prob")
    add("propensity", "float", chosen.columns[None] if chosen else None)
    for part in draft.action:
        name = part.name("action", draft.action_kind)
        add(name, types[name], part.raw, part.item)
    now = tuple(part.name("observation", kind) for part in draft.observation)
    for name, part in zip(now, draft.observation, strict=True):
        add(name, types[name], part.raw, part.item)
    if "next_observation" in found:
        after = _expand(found["next_observation"], "next_observation", source, width=len(now))
        _check_factors(draft.observation, after, kind, source)
        for part in after:
            name = part.name("next_observation", kind)
            add(name, types[name.removeprefix("next_")], part.raw, part.item)
    derived = {"episode_id", "step", "next_observation"} - set(found)
    derived |= {"terminated"} if source.ends == "terminated" else set()
    following = tuple(f"next_{name}" for name in now)
    action = tuple(part.name("action", draft.action_kind) for part in draft.action)
    marked = bool(marks_of(found))
    return Plan(source, index, columns, now, following, action, frozenset(derived), logp, marked)


def _check(source: Source, raw: str, item: int | None, type_: Type, name: str) -> None:
    """Every piece has the column (or may lack it), with a kind that turns into the type."""
    for piece in source.pieces:
        field = field_in(piece, raw, item)
        if field is None:
            if name not in OPTIONAL:
                raise DataError(
                    "A file of the source lacks a column that others have",
                    where=piece.files[0],
                    column=raw,
                    hint="read the files as separate sources, or drop the column from all of them",
                )
        elif field.kind == "bool" and name in MEASURED:
            said = "numbers; if true and false stand for 1 and 0, store these"
            raise unknown(piece.files[0], raw, field, said, _spared(name))
        elif field.kind not in ACCEPTED[type_] and (name != "policy_id" or field.kind in {"list", "other"}):
            told = piece.explain_text({raw: type_}) if field.kind == "string" else None
            raise told or unknown(piece.files[0], raw, field, EXPECTED[type_], _spared(name))


def _spared(name: str) -> str | None:
    """The notion of a canonical column, where a log can do without it."""
    notion = name.partition(".")[0]
    needed = {"observation", "action", "reward"}
    return None if notion in needed else "action_prob" if notion == "propensity" else notion


def _expand(assignment: Assignment, notion: str, source: Source, width: int | None = None) -> list[Part]:
    """The parts of a notion, lists unpacked into their elements (``width``: of lists that do not say)."""
    parts: list[Part] = []
    for factor, raw in assignment.columns.items():
        lists = [field for _, field in source.fields_in(raw) if field.kind == "list"]
        if not lists:
            parts.append(Part(factor, raw))
            continue
        size = lists[0].width or width or _first_width(source, raw)
        if size == 1 and factor is None and lists[0].element != "float":
            parts.append(Part(None, raw, 0))
        else:
            parts += [Part(str(i) if factor is None else f"{factor}.{i}", raw, i) for i in range(size)]
    if not parts:
        raise DataError(f"The {notion} has no elements", where=source.name, expected="at least one number")
    return parts


def _first_width(source: Source, raw: str) -> int:
    for piece in source.pieces:
        if raw in piece.fields and piece.fields[raw].kind == "list":
            with reading(piece.files[0]), connect() as connection:
                rows = piece.relation(connection)
                query = f"SELECT len({quote(raw)}) FROM {rows} WHERE {quote(raw)} IS NOT NULL LIMIT 1"
                found = connection.execute(query).fetchall()
            if found:
                return int(found[0][0])
    return 0


def _observation_kind(parts: Sequence[Part], source: Source) -> ObservationKind:
    """Any float makes a vector; then all must be numbers."""
    kinds = {part.raw: settle(source.fields_in(part.raw, part.item), part.raw) for part in parts}
    if "float" not in kinds.values():
        return "id" if len(parts) == 1 and parts[0].suffix is None else "factors"
    words = [raw for raw, kind in kinds.items() if kind == "string"]
    if words:
        raise DataError(
            "The observation mixes numbers and words",
            where=source.name,
            column=words[0],
            expected="all floats (a vector), or all integers and strings (factors)",
            hint=Advice(
                "turn the float columns into classes, or leave this one out: ",
                Setting("columns", {"observation": [...]}),
            ),
        )
    return "vector"


def _check_factors(now: Sequence[Part], after: Sequence[Part], kind: ObservationKind, source: Source) -> None:
    """Observation and next observation have the same factors."""
    mine = {part.name("observation", kind).partition(".")[2] for part in now}
    theirs = {part.name("next_observation", kind).partition(".")[2] for part in after}
    if mine != theirs:
        raise DataError(
            "observation and next_observation have different factors",
            where=source.name,
            column=", ".join(sorted(mine ^ theirs)),
            expected="next_observation: " + (", ".join(sorted(mine)) if mine != {""} else "one column"),
            got=", ".join(sorted(theirs)) if theirs != {""} else "one column",
            hint=Advice(
                "map both with lists of the same length: ",
                Setting("columns", {"observation": [...], "next_observation": [...]}),
            ),
        )


def _schema_of(plans: Sequence[Plan], drafts: Sequence[Draft], types: Mapping[str, Type]) -> Schema:
    """The schema that all sources share; the mapping is that of the first."""
    first, draft = plans[0], drafts[0]
    every = (
        dict(types) | {f"next_{name}": types[name] for name in first.observation} | {"start": "bool", "source": "int"}
    )
    labelled = any("policy_id" in d.found or d.source.label is not None for d in drafts)
    return Schema(
        observation=first.observation,
        next_observation=first.next_observation,
        observation_kind=draft.observation_kind,
        action=first.action,
        action_kind=draft.action_kind,
        has_propensity=any(plan.columns["propensity"].raw is not None for plan in plans),
        has_policy_id=labelled,
        types=every,
        mapping=_mapping(draft),
    )


def _mapping(draft: Draft) -> dict[str, str | tuple[str, ...]]:
    marked = bool(marks_of(draft.found))
    ended = draft.source.ends == "terminated"
    absent = {
        "episode_id": "derived: cut at terminated or truncated rows" if marked else "derived: one episode",
        "step": "derived: row order",
        "next_observation": "derived: next row",
        "terminated": "derived: the last row of every episode" if ended else "absent: false",
        "truncated": "absent: false",
        "policy_id": f"label: {draft.source.label}" if draft.source.label else "absent: one unlabelled pool",
        "action_prob": "absent: unknown",
    }
    if "action_logp" in draft.found and "action_prob" not in draft.found:
        del absent["action_prob"]
    return absent | {notion: assignment.words() for notion, assignment in draft.found.items()}


def _notes_of(plan: Plan, draft: Draft) -> list[str]:
    """What was assumed of one source, in sentences."""
    name, found, notes = plan.source.name, draft.found, []
    if "step" in plan.derived:
        both = "next_observation" in plan.derived
        what = "steps and next observations are" if both else "steps are"
        notes.append(
            f"{name}: no step column; {what} taken from the row order within each episode{TRUSTED if both else ''}"
        )
    if "episode_id" in plan.derived:
        cut = "episodes are cut after each terminated or truncated row"
        how = cut if plan.marked else "all its rows are taken as one episode"
        notes.append(f"{name}: no episode_id column; {how}")
    if plan.source.label is not None and "policy_id" in found:
        notes.append(f"{name}: has its own policy_id column; the label {plan.source.label!r} fills its nulls only")
    if "action_prob" in found and "action_logp" in found:
        notes.append(f"{name}: has both action_prob and action_logp; action_prob is used")
    if draft.observation_kind == "vector" and draft.observation[0].suffix is None:
        notes.append(f"{name}: observation is one column of floats, taken as a number; if they are ids, store integers")
    return notes
