"""The past of an episode as columns of the state: what was done and seen before, and running means of it.

Along an episode, ordered by step and then by row, with x_t the state and a_t the action of row t,

    lags = k        a_{t−1} … a_{t−k}; of categories x_{t−1} … x_{t−k}; of numbers the differences x_t − x_{t−1}, …
    history = c     (c_0 + … + c_{t−1}) / t, where c is the reward, a number, or whether an action was taken

stand beside x_t, and what they will be after the row stands beside the next state: a_t, x_t, x_{t+1} − x_t and
(c_0 + … + c_t) / (t + 1). These hang on the row itself and on those before it, so that the next state of a last row is
known as well as any other. An episode begins anew after a row that was terminated or truncated, and where rows are
missing. Its first row has the category ``(start)``, the difference 0, and of a running mean the mean over all rows.

States that can be counted stay so: their running means are cut into :data:`CLASSES` classes of about equally many rows,
at edges of a grid of :data:`GRID` equal cells between the least and the greatest. Running means are kept in single
precision, so that the order of additions shows nowhere.

It is one ordered pass by DuckDB, which goes to the disk where memory does not suffice. What comes of it are logs like
any others, in memory where the rows were, else as Parquet in a scratch folder. Policies see the state as it was logged
(:func:`mixope.policies.on_recorded`), and what is wrong with rows is looked for in the rows that were logged.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mixope.base.arrays import is_whole
from mixope.base.errors import Advice, DataError, Setting, UsageError
from mixope.logs import view
from mixope.logs.schema import MISSING_NUMBER, UNIT, Role, Schema
from mixope.logs.sources import Piece, Source, arrow_batches, literal, quote, reading
from mixope.logs.sources.arrow import ArrowTable
from mixope.logs.sources.files import open_files
from mixope.logs.sources.found import Found
from mixope.logs.sources.scratch import ROWS, VARIABLE, written_once
from mixope.logs.succession import differ

if TYPE_CHECKING:
    from mixope.logs.logs import Logs

MOST_LAGS = 3
START = "(start)"
"""The category of what was before the first row of an episode."""
CLASSES = ("low", "middle", "high")
"""Of a running mean, where states are counted."""
GRID = 4096
MOST_SHARES = 10
"""Actions whose shares are followed."""
LARGEST = 2_000_000_000
"""Bytes that rows in memory may take."""
BACK = "PARTITION BY source, policy_id, episode_id"
ORDER = f"ORDER BY step, {view.ROW}"


@dataclass(frozen=True)
class Past:
    """How much of the past stands beside the state."""

    lags: int = 0
    history: tuple[str, ...] = ()

    @classmethod
    def of(cls, lags: int = 0, history: str | Sequence[str] | None = None) -> Past | None:
        """As a user says it; None where nothing is asked for."""
        if not is_whole(lags) or not 0 <= lags <= MOST_LAGS:
            raise UsageError(f"lags is a number from 0 to {MOST_LAGS}, got {lags!r}")
        listed = isinstance(history, list | tuple)
        names: tuple[Any, ...] = tuple(history or ()) if listed or history is None else (history,)
        if not all(isinstance(name, str) and name for name in names):
            raise UsageError(f"history is a column or a list of columns, such as 'reward', got {history!r}")
        return cls(int(lags), tuple(dict.fromkeys(names))) if lags or names else None

    @property
    def settings(self) -> tuple[str | Setting, ...]:
        """What was asked for, for a sentence."""
        lags = (Setting("lags", self.lags),) if self.lags else ()
        history = (
            (Setting("history", self.history[0] if len(self.history) == 1 else list(self.history)),)
            if self.history
            else ()
        )
        return (*lags, " and ", *history) if lags and history else (*lags, *history)


@dataclass(frozen=True)
class PastColumn:
    """A column of the past: what it is called, and the SQL of its value now and after the row.

    ``mean`` is the SQL of what is averaged, of a running mean: ``now`` and ``after`` follow from it.
    """

    name: str
    role: Role
    now: str = ""
    after: str = ""
    mean: str | None = field(default=None, kw_only=True)


def earlier(name: str, steps: int) -> str:
    """What a column is called some steps before: ``action before``, ``action 2 before``."""
    return f"{name}{'' if steps == 1 else f' {steps}'} before" if steps else name


def names_of_state(schema: Schema) -> tuple[str, ...]:
    """What the columns of the state are called; one that is whole by its name in the file."""
    if schema.observation_kind == "id" or schema.observation == ("observation",):
        raw = schema.mapping.get("observation", "state")
        return (raw.rpartition(".")[2] if isinstance(raw, str) else "state",)
    return tuple(name.partition(".")[2] for name in schema.observation)


def put_beside(logs: Logs, past: Past) -> tuple[list[Source], tuple[str, ...]]:
    """The rows of some logs with their past, as one source for each that they had; and the names of the new columns."""
    _refuse_no_room(logs, past)
    with logs.scanning(), reading(logs.name), logs.connect() as connection:
        columns = columns_of(logs, past, connection)
        connection.execute(f"CREATE TEMP TABLE past AS {_with_means(logs, columns, connection)}")
        shown = _shown(logs.schema, [*_settled(columns, logs.schema.discrete, connection)])
        found = []
        for plan in logs.plans:
            query = f"SELECT {shown} FROM past WHERE source = {plan.index} ORDER BY {view.ROW}"
            pieces, held = _pieces(arrow_batches(connection.sql(query), ROWS), plan.source)
            found.append(_source(plan.source, logs.schema, columns, pieces, held))
    return found, tuple(column.name for column in columns)


def lone_rows(logs: Logs) -> int:
    """How many rows are the only ones of their state and action, where both can be counted."""
    with reading(logs.name), logs.connect() as connection:
        rows = view.rows(logs.plans, logs.schema, connection, logs.step_base)
        keys = ", ".join(map(quote, (*logs.schema.observation, *logs.schema.action)))
        alone = f"SELECT count(*) AS n FROM ({rows}) GROUP BY {keys} HAVING count(*) = 1"
        return int(connection.execute(f"SELECT count(*) FROM ({alone})").fetchall()[0][0])


def columns_of(logs: Logs, past: Past, connection: Any) -> list[PastColumn]:
    """The columns of the past of some logs: of the lags, then running means."""
    schema = logs.schema
    found = [column for lag in range(1, past.lags + 1) for column in _lagged(schema, lag)]
    for name in past.history:
        found += _means(logs, name, connection)
    taken = {name.lower() for name in names_of_state(schema)}
    twice = next((column.name for column in found if column.name.lower() in taken), None)
    if twice is not None:
        raise DataError(
            "The state has a column of this name already", where=logs.name, column=twice, hint="rename that column"
        )
    return found


def _lagged(schema: Schema, lag: int) -> Iterator[PastColumn]:
    """The action some steps before; of every column of the state, the value then or how it changed then."""
    for column, suffix in zip(schema.action, _suffixes(schema.action), strict=True):
        name = earlier(f"action{suffix}", lag)
        yield _number(name, quote(column), lag) if schema.action_kind == "continuous" else _word(name, column, lag)
    for column, name, role in zip(schema.observation, names_of_state(schema), schema.roles, strict=True):
        if role == "number":
            yield _change(column, name, lag, schema)
        elif role != "missing":
            yield _word(earlier(name, lag), column, lag, role)


def _suffixes(names: Sequence[str]) -> list[str]:
    """What tells several columns apart; nothing where there is one."""
    return [name[len("action") :] for name in names]


def _word(name: str, column: str, lag: int, role: Role = "category") -> PastColumn:
    text = f"CAST({quote(column)} AS VARCHAR)"
    return PastColumn(name, role, _back(text, lag, literal(START)), _back(text, lag - 1, literal(START)))


def _number(name: str, value: str, lag: int) -> PastColumn:
    return PastColumn(name, "number", _back(value, lag, "0.0"), _back(value, lag - 1, "0.0"))


def _change(column: str, name: str, lag: int, schema: Schema) -> PastColumn:
    """By how much a number rose from one row to the next; 0 where either is missing."""
    value, after = _known(column, schema), _known(f"next_{column}", schema)

    def rise(newer: int) -> str:
        return f"coalesce({_back(value, newer)} - {_back(value, newer + 1)}, 0.0)"

    later = f"coalesce({after} - {value}, 0.0)" if lag == 1 else rise(lag - 2)
    return PastColumn(earlier(f"{name} change", lag - 1), "number", rise(lag - 1), later)


def _known(column: str, schema: Schema) -> str:
    """A number, null where it is missing and the state says so."""
    gap = f"{column} missing"
    return f"CASE WHEN {quote(gap)} = 0 THEN {quote(column)} END" if gap in schema.types else quote(column)


def _back(value: str, rows: int, otherwise: str | None = None) -> str:
    """A value so many rows before, within a run of rows."""
    found = f"lag({value}, {rows}) OVER run" if rows else value
    return found if otherwise is None else f"coalesce({found}, {otherwise})"


def _means(logs: Logs, name: str, connection: Any) -> Iterator[PastColumn]:
    """The running means of a named column; of actions that are counted, the share of each but one."""
    schema = logs.schema
    role: Role = "category" if schema.discrete else "number"
    if name == "reward":
        yield PastColumn("mean reward", role, mean="reward")
        return
    if name in {"action", schema.mapping.get("action")}:
        if schema.action_kind == "continuous":
            for column, suffix in zip(schema.action, _suffixes(schema.action), strict=True):
                yield PastColumn(f"mean action{suffix}", role, mean=quote(column))
            return
        yield from _shares(logs, connection, role)
        return
    states = dict(zip(names_of_state(schema), schema.observation, strict=True))
    column = states.get(name, name)
    if column not in schema.observation or schema.types[column] not in {"int", "float"}:
        raise _no_history(logs, name, column in schema.observation)
    value = _known(column, schema) if schema.types[column] == "float" else f"nullif({quote(column)}, {MISSING_NUMBER})"
    yield PastColumn(f"mean {names_of_state(schema)[schema.observation.index(column)]}", role, mean=value)


def _no_history(logs: Logs, name: str, words: bool) -> DataError:
    schema = logs.schema
    numbers = [
        short
        for short, column, role in zip(names_of_state(schema), schema.observation, schema.roles, strict=True)
        if schema.types[column] in {"int", "float"} and role != "missing"
    ]
    return DataError(
        f"There is no running mean of {name!r}" + (", which has words" if words else ""),
        where=logs.name,
        column=name,
        expected=f"one of {', '.join(['reward', 'action', *numbers])}",
        hint=Advice(Setting("lags", 1), " puts the category before into the state")
        if words
        else "a running mean is of the reward, of the action, or of a number that the state has",
    )


def _shares(logs: Logs, connection: Any, role: Role) -> Iterator[PastColumn]:
    (action,) = logs.schema.action
    rows = view.rows(logs.plans, logs.schema, connection, logs.step_base)
    query = f"SELECT DISTINCT {quote(action)} AS a FROM ({rows}) WHERE a IS NOT NULL ORDER BY a LIMIT {MOST_SHARES + 1}"
    values = [value for (value,) in connection.execute(query).fetchall()]
    if len(values) > MOST_SHARES:
        raise DataError(
            "There are too many actions for the share of each",
            where=logs.name,
            column="action",
            expected=f"at most {MOST_SHARES} actions",
            hint=Advice("use ", Setting("history", "reward"), " or ", Setting("lags", 1)),
        )
    for value in values[1:]:
        yield PastColumn(f"share of action {value}", role, mean=f"CAST({quote(action)} = {literal(value)} AS DOUBLE)")


def _with_means(logs: Logs, columns: Sequence[PastColumn], connection: Any) -> str:
    """All rows with what column k of the past is now and after them; a running mean as it is, null at the start."""
    schema, first = logs.schema, f"({BACK} {ORDER})"
    rows = view.rows(logs.plans, schema, connection, logs.step_base, numbered=True, keep_all=True)
    lagged = ", ".join(f"lag({quote(name)}) OVER w AS {quote('__' + name)}" for name in schema.next_observation)
    linked = (
        f"SELECT *, lag(step) OVER w AS __step, lag(terminated OR truncated) OVER w AS __over, {lagged}"
        f" FROM ({rows}) WINDOW w AS {first}"
    )
    pairs = zip(schema.observation, schema.next_observation, strict=True)
    gone = " OR ".join(differ(now, after, schema.types[now]) for now, after in pairs)
    anew = f"coalesce(__over OR (step > __step + 1 AND coalesce({gone}, true)), true)"
    runs = f"SELECT *, sum(CAST({anew} AS BIGINT)) OVER w AS __run FROM ({linked}) WINDOW w AS {first}"
    run = f"WINDOW run AS ({BACK}, __run {ORDER})"
    means = [
        f"TRY_CAST(avg(CAST({column.mean} AS DOUBLE)) OVER ({BACK}, __run {ORDER} ROWS UNBOUNDED PRECEDING) AS FLOAT)"
        f" AS __mean{k}"
        for k, column in enumerate(columns)
        if column.mean is not None
    ]
    inner = f"SELECT {', '.join(['*', *means])} FROM ({runs})" if means else runs
    shown = []
    for k, column in enumerate(columns):
        now, after = (f"lag(__mean{k}) OVER run", f"__mean{k}") if column.mean else (column.now, column.after)
        shown += [f"{now} AS {_now(k)}", f"{after} AS {_after(k)}"]
    return f"SELECT *, {', '.join(shown)} FROM ({inner}) {run}"


def _now(k: int) -> str:
    return f"__now{k}"


def _after(k: int) -> str:
    return f"__after{k}"


def _settled(columns: Sequence[PastColumn], counted: bool, connection: Any) -> list[tuple[PastColumn, str, str]]:
    """Every column with the SQL of its value now and after, where the rows lie in order: means get their classes."""
    found = []
    for k, column in enumerate(columns):
        made: Callable[[str], str] = str
        if column.mean is not None:
            made = _classes(k, connection) if counted else _or_mean(k, connection)
        found.append((column, made(_now(k)), made(_after(k))))
    return found


def _or_mean(k: int, connection: Any) -> Callable[[str], str]:
    """A running mean, at the start that of all rows."""
    query = f"SELECT coalesce(CAST(CAST(avg(CAST({_after(k)} AS DOUBLE)) AS FLOAT) AS DOUBLE), 0.0) FROM past"
    usual = float(connection.execute(query).fetchall()[0][0])
    return lambda value: f"coalesce(CAST({value} AS DOUBLE), {usual!r})"


def _classes(k: int, connection: Any) -> Callable[[str], str]:
    """The class of a running mean: cut where about equally many rows are below and above."""
    low, high, rows = connection.execute(
        f"SELECT min({_now(k)}), max({_now(k)}), count({_now(k)}) FROM past"
    ).fetchall()[0]
    cuts: list[float] = []
    if rows and high > low:
        width = (float(high) - float(low)) / GRID
        cell = f"CAST(least(floor(({_now(k)} - {float(low)!r}) / {width!r}), {GRID - 1}) AS BIGINT)"
        query = f"SELECT {cell} AS cell, count(*) FROM past WHERE {_now(k)} IS NOT NULL GROUP BY cell ORDER BY cell"
        below = 0
        for cell_number, count in connection.execute(query).fetchall():
            below += int(count)
            while len(cuts) < len(CLASSES) - 1 and below * len(CLASSES) >= rows * (len(cuts) + 1):
                cuts.append(float(low) + width * (int(cell_number) + 1))

    def named(value: str) -> str:
        tests = "".join(
            f" WHEN CAST({value} AS DOUBLE) < {cut!r} THEN {literal(name)}"
            for cut, name in zip(cuts, CLASSES, strict=False)
        )
        return f"CASE WHEN {value} IS NULL THEN {literal(START)}{tests} ELSE {literal(CLASSES[-1])} END"

    return named


def _shown(schema: Schema, columns: Sequence[tuple[PastColumn, str, str]]) -> str:
    """The columns of the rows by canonical names; where a state is not known, neither is its past."""
    names, shown = names_of_state(schema), ["episode_id", "step"]
    shown += ["policy_id"] if schema.has_policy_id else []
    for mark, state, place in (("", schema.observation, 0), ("next_", schema.next_observation, 1)):
        known = " AND ".join(f"{quote(column)} IS NOT NULL" for column in state)
        for column, name, role in zip(state, names, schema.roles, strict=True):
            if role != "missing":
                shown.append(f"{_known(column, schema)} AS {quote(f'{mark}observation.{name}')}")
        for added, *values in columns:
            called = quote(f"{mark}observation.{added.name}")
            shown.append(f"CASE WHEN {known} THEN {values[place]} END AS {called}")
    shown += [*map(quote, schema.action), "reward", "terminated", "truncated"]
    shown += ["propensity AS action_prob"] if schema.has_propensity else []
    return ", ".join([*shown, *([UNIT] if schema.has_unit else [])])


def _pieces(batches: Any, source: Source) -> tuple[tuple[Piece, ...], tuple[Any, ...]]:
    """The rows in memory if they were there, else written once; and what must not go while they are read."""
    if source.in_memory:
        return (ArrowTable(batches.read_all(), (source.name,)),), ()
    store = written_once(batches, source.name)
    return open_files((Found(source.name, typed=True, format="parquet", store=store),), None), (store.held,)


def _source(
    source: Source, schema: Schema, columns: Sequence[PastColumn], pieces: tuple[Piece, ...], held: tuple[Any, ...]
) -> Source:
    """A source of rows that say everything themselves."""
    roles: dict[str, Role] = {
        f"observation.{name}": role
        for name, role in zip(names_of_state(schema), schema.roles, strict=True)
        if role != "missing"
    }
    roles |= {f"observation.{column.name}": column.role for column in columns}
    if schema.action_kind == "discrete" and schema.types[schema.action[0]] == "float":
        roles["action"] = "id"
    missing = "keep" if "missing" in schema.roles else None
    return Source(source.name, pieces, record=source.record, roles=roles, missing=missing, held=held)


def _refuse_no_room(logs: Logs, past: Past) -> None:
    """An error where the rows with their past would not fit."""
    width = len(logs.schema.columns) + 2 * (past.lags * (len(logs.schema.observation) + 1) + len(past.history))
    needed = 8 * width * logs.total_rows()
    if logs.in_memory and needed > LARGEST:
        raise UsageError(
            Advice(
                f"{logs.total_rows():,} rows in memory with their past take about {needed / 1e9:,.0f} GB more: write"
                " them to Parquet files and read these, which need not fit in memory, or leave out ",
                *past.settings,
            )
        )
    free = None if logs.in_memory else _free()
    if free is not None and 2 * needed > free:
        raise UsageError(
            Advice(
                f"{logs.total_rows():,} rows with their past take about {2 * needed / 1e9:,.0f} GB on the disk while"
                f" they are put in order, and {free / 1e9:,.0f} GB are free: set TMPDIR and {VARIABLE} to a folder with"
                " more room, or leave out ",
                *past.settings,
            )
        )


def _free() -> int | None:
    """Bytes that are free for temporary files; None where nobody tells."""
    import tempfile

    try:
        return shutil.disk_usage(tempfile.gettempdir()).free
    except OSError:
        return None
