"""How each source becomes canonical rows: which raw column, which element of it, and to which type.

A plan is decided once, from names and types alone, and then carried out twice: as SQL (``view``) and in NumPy
(``table``). All sources must agree on the kind of observations and actions and on the type of every id.

one column of ints or strings          id        observation
several, or lists of ints              factors   observation.cell, observation.taxi
floats: one column, several, or lists  vector    observation.0, observation.1, …
categories and numbers side by side    mixed     observation.ward, observation.age, observation.age missing

Which columns are categories and which are numbers is decided by :mod:`mixope.logs.roles`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mixope.base.errors import DataError
from mixope.logs.drafts import Draft, lay_out, leave_out_empty, notes_on_missing, require
from mixope.logs.names import Assignment, assign, marks_of, refuse_two_words
from mixope.logs.parts import ColumnPart
from mixope.logs.roles import notes_on_roles, role_said
from mixope.logs.schema import MISSING_NUMBER, MISSING_WORD, UNFOLLOWED, Role, Schema, Type
from mixope.logs.sources import Piece, Source, field_in
from mixope.logs.sources.lists import Place, unpack
from mixope.logs.sources.times import order_by_time
from mixope.logs.types import ACCEPTED, EXPECTED, settle, unknown

FIXED: dict[str, Type] = {
    "policy_id": "string",
    "unit": "string",
    "step": "int",
    "reward": "float",
    "terminated": "bool",
    "truncated": "bool",
    "propensity": "float",
}

MEASURED = ("reward", "propensity")
"""Notions that are numbers: true and false are not taken for 1 and 0."""

NAMES = ("policy_id", "unit")
"""Notions that are told apart by their words, whatever these are made of."""

TRUSTED = ". Nothing tells whether rows are in the order in which they happened; in another one the value is another"

OPTIONAL = ("policy_id", "propensity", "unit")
"""Notions that some files of a source may lack: null there."""


@dataclass(frozen=True)
class Column:
    """One canonical column of one source: a raw column (None: absent), perhaps one element of its lists, and a type.

    ``fill`` stands for missing values, as long as some part of the same ``state`` is known. ``indicates``: the column
    is 1 where the raw one is missing, else 0.
    """

    name: str
    type: Type
    raw: str | None
    item: int | None = None
    fill: str | int | float | None = None
    indicates: bool = False
    state: tuple[ColumnPart, ...] = ()


@dataclass(frozen=True)
class ReadingPlan:
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
    def clock(self) -> str | None:
        """The raw column whose times order the rows of an episode, where steps are derived from it."""
        return self.columns["time"].raw if "time" in self.columns else None

    @property
    def keeps_all(self) -> bool:
        """Whether it is known without looking that every row has a next observation or an end, and none is dropped."""
        if "next_observation" not in self.derived:
            return all(self.knows(name, "null_free") for name in self.next_observation)
        return "terminated" in self.derived and all(self.knows(name, "null_free") for name in self.observation)

    @property
    def asks(self) -> bool:
        """Whether it hangs on how episodes end if their last rows can be used, and nothing says how they do."""
        silent = not self.marked and self.source.ends is None
        return silent and "next_observation" in self.derived and "episode_id" not in self.derived

    @property
    def told(self) -> tuple[str, ...]:
        """What must be known of a row after which nobody knows what came, for the row to say anything."""
        return (*self.observation, *self.action, "reward")

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


def make_plans(sources: Sequence[Source]) -> tuple[tuple[ReadingPlan, ...], Schema, tuple[str, ...], tuple[str, ...]]:
    """The plans of all sources, the common schema, and notes for the user: what was assumed, and what was asked for."""
    notes: list[str] = []
    drafts = []
    for source in sources:
        found, said = assign(source.names, source.name, source.columns, source.done)
        notes += (*source.notes, *said, *leave_out_empty(found, source))
        require(found, source)
        refuse_two_words(found, source.name, source.ends)
        ordered, clock, said = order_by_time(source, found)
        unpacked, more = unpack(ordered, _places(found, ordered))
        notes += (*said, *more)
        drafts.append(Draft(unpacked, found, clock))
    lay_out(drafts)
    types = _id_types(drafts)
    plans = tuple(_plan(draft, index, types) for index, draft in enumerate(drafts))
    for plan, draft in zip(plans, drafts, strict=True):
        notes += _notes_of(plan, draft)
    return plans, _schema_of(plans, drafts, types), tuple(dict.fromkeys(notes)), tuple(notes_on_missing(drafts))


def _places(found: Mapping[str, Assignment], source: Source) -> Iterator[Place]:
    """The columns of states and actions, those of a state beside those of the next."""
    after = found["next_observation"].columns if "next_observation" in found else {}
    for factor, raw in found["observation"].columns.items():
        columns = (raw, after[factor]) if factor in after else (raw,)
        yield Place(columns, role_said(ColumnPart(factor, raw), source), state=True)
    for raw in found["action"].columns.values():
        yield Place((raw,))


def _id_types(drafts: Sequence[Draft]) -> dict[str, Type]:
    """The type of every observation, action and episode column, over all sources."""
    types: dict[str, Type] = dict(FIXED)
    if not any("unit" in draft.found for draft in drafts):
        del types["unit"]
    first = drafts[0]
    states = (part.name("observation", first.observation_kind) for part in first.observation)
    numbers = {name for name, role in zip(states, first.roles, strict=True) if role in {"number", "missing"}}
    if first.action_kind == "continuous":
        numbers |= {part.name("action", "continuous") for part in first.action}
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
            types[name] = "float" if name in numbers else settle(entries, name)
    given = [(d.source, d.found["episode_id"].columns[None]) for d in drafts if "episode_id" in d.found]
    entries = [entry for source, raw in given for entry in source.fields_in(raw)]
    settled = settle(entries, "episode_id") if entries else "int"
    types["episode_id"] = "int" if settled == "float" else settled
    return types


def _plan(draft: Draft, index: int, types: Mapping[str, Type]) -> ReadingPlan:
    found, source, kind = draft.found, draft.source, draft.observation_kind
    columns: dict[str, Column] = {}

    def add(name: str, type_: Type, raw: str | None, part: ColumnPart | None = None) -> None:
        item = part.item if part else None
        if raw is not None:
            _check(source, raw, item, type_, name)
        columns[name] = Column(name, type_, raw, item)

    def add_state(notion: str, parts: Sequence[ColumnPart]) -> None:
        for part, role in zip(parts, draft.roles if parts else (), strict=True):
            name = part.name(notion, kind)
            add(name, types[name.removeprefix("next_")], part.raw, part)
            if part.indicates or part.suffix in draft.filled:
                fill = None if part.indicates else _fill(columns[name].type, role)
                state = tuple(other for other in parts if not other.indicates)
                columns[name] = replace(columns[name], fill=fill, indicates=part.indicates, state=state)

    for notion in ("policy_id", "episode_id", "step", "reward", "terminated", "truncated"):
        add(notion, types[notion], found[notion].columns[None] if notion in found else None)
    if "unit" in types:
        add("unit", "string", found["unit"].columns[None] if "unit" in found else None)
    if draft.clock is not None:
        numbers = {settle(source.fields_in(draft.clock), draft.clock)}
        add("time", "float" if "float" in numbers else "int", draft.clock)
    logp = "action_prob" not in found and "action_logp" in found
    chosen = found.get("action_logp" if logp else "action_prob")
    add("propensity", "float", chosen.columns[None] if chosen else None)
    for part in draft.action:
        name = part.name("action", draft.action_kind)
        add(name, types[name], part.raw, part)
    now = tuple(part.name("observation", kind) for part in draft.observation)
    add_state("observation", draft.observation)
    add_state("next_observation", draft.following)
    derived = {"episode_id", "step", "next_observation"} - set(found)
    derived |= {"terminated"} if source.ends == "terminated" else set()
    following = tuple(f"next_{name}" for name in now)
    action = tuple(part.name("action", draft.action_kind) for part in draft.action)
    marked = bool(marks_of(found))
    return ReadingPlan(source, index, columns, now, following, action, frozenset(derived), logp, marked)


def _fill(type_: Type, role: Role) -> str | int | float:
    """What stands for a missing value: 0 for a number, which its indicator takes back; for a category its own value."""
    if role == "number":
        return 0.0
    return MISSING_WORD if type_ == "string" else MISSING_NUMBER


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
        elif field.kind not in ACCEPTED[type_] and (name not in NAMES or field.kind in {"list", "time", "other"}):
            told = piece.explain_text({raw: type_}) if field.kind == "string" else None
            raise told or unknown(piece.files[0], raw, field, EXPECTED[type_], _spared(name))


def _spared(name: str) -> str | None:
    """The notion of a canonical column, where a log can do without it."""
    notion = name.partition(".")[0]
    needed = {"observation", "action", "reward"}
    return None if notion in needed else "action_prob" if notion == "propensity" else notion


def _schema_of(plans: Sequence[ReadingPlan], drafts: Sequence[Draft], types: Mapping[str, Type]) -> Schema:
    """The schema that all sources share; the mapping is that of the first."""
    first, draft = plans[0], drafts[0]
    following: dict[str, Type] = {f"next_{name}": types[name] for name in first.observation}
    every = dict(types) | following | {"start": "bool", "source": "int", UNFOLLOWED: "bool"}
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
        roles=draft.roles,
        has_unit="unit" in types,
    )


def _mapping(draft: Draft) -> dict[str, str | tuple[str, ...]]:
    marked = bool(marks_of(draft.found))
    ended = draft.source.ends == "terminated"
    absent = {
        "episode_id": "derived: cut at terminated or truncated rows" if marked else "derived: one episode",
        "step": "derived: row order" if draft.clock is None else f"derived: order of {draft.clock!r}",
        "next_observation": "derived: next row",
        "terminated": "derived: the last row of every episode" if ended else "absent: false",
        "truncated": "absent: false",
        "policy_id": f"label: {draft.source.label}" if draft.source.label else "absent: one unlabelled pool",
        "action_prob": "absent: unknown",
    }
    if "action_logp" in draft.found and "action_prob" not in draft.found:
        del absent["action_prob"]
    return absent | {notion: assignment.words() for notion, assignment in draft.found.items()}


def _notes_of(plan: ReadingPlan, draft: Draft) -> list[str]:
    """What was assumed of one source, in sentences."""
    name, found, notes = plan.source.name, draft.found, []
    if plan.clock is not None:
        notes.append(f"{name}: no step column; the rows of each episode are in the order of column {plan.clock!r}")
    elif "step" in plan.derived:
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
    values = [(part, role) for part, role in zip(draft.observation, draft.roles, strict=True) if not part.indicates]
    return [*notes, *notes_on_roles([part for part, _ in values], [role for _, role in values], plan.source)]
