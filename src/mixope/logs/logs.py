"""``Logs``: some inputs seen as one table of canonical rows, lazily and without changing them.

Two ways in, for everything above: ``view`` (SQL, larger than memory) and ``table`` (Arrow, in memory). They give the
same rows by independent code. ``fragments`` are the rows of ``table`` in parts that other processes can open.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, final

from mixope.base.errors import Advice, DataError, UsageError
from mixope.base.rendering import as_frame, inspected, render
from mixope.logs import choosing, view
from mixope.logs.clocks import check_clocks
from mixope.logs.database import connect
from mixope.logs.fragments import ROWS, Fragment, fragments_of, known_columns, plans_apart
from mixope.logs.gathering import Bucket, Load, loads_of
from mixope.logs.looking import SHOWN, in_words
from mixope.logs.names import check_ends
from mixope.logs.past import Past, put_beside
from mixope.logs.plan import ReadingPlan, make_plans
from mixope.logs.roles import check_missing, check_roles
from mixope.logs.schema import EPISODE_KEYS, Schema
from mixope.logs.sources import Source, reading, unique
from mixope.logs.sources.arrays import table_of_arrays
from mixope.logs.sources.arrow import ArrowTable
from mixope.logs.sources.copies import SHORT, refuse_copies
from mixope.logs.sources.stamps import refuse_changed
from mixope.logs.succession import explain_steps
from mixope.logs.table import least_step, rows_of
from mixope.logs.timing import timed


@final
class Logs:
    """Canonical rows of one or more sources. Made by ``read`` or ``Logs.from_arrays``; never changes.

    ``schema`` says what the rows hold and which column of the file each notion came from; ``notes`` what was assumed.
    """

    sources: tuple[Source, ...]
    plans: tuple[ReadingPlan, ...]
    schema: Schema
    notes: tuple[str, ...]
    assumed: tuple[str, ...]
    """Those of the notes that nobody asked for."""
    bounds: tuple[str | None, int | None]
    """How much memory and how many threads any reading of the rows by SQL may take."""
    past: Past | None = None
    """What of the past of an episode stands beside the state."""
    _origin: Logs | None = None
    _kept: dict[str, tuple[object, Any]]

    def __init__(self, sources: Sequence[Source]) -> None:
        if not sources:
            raise DataError("No logs were given", expected="at least one file or table")
        refuse_copies(sources, _one_short_episode)
        plans, schema, assumed, asked = make_plans(sources)
        check_clocks(plans)
        self.__dict__.update(sources=tuple(sources), plans=plans, schema=schema, bounds=(None, None))
        self.__dict__.update(assumed=assumed, notes=(*assumed, *asked), _kept={})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Logs never change; read them again to set {name!r}")

    @classmethod
    def from_arrays(
        cls,
        *,
        observation: Any,
        action: Any,
        reward: Any,
        next_observation: Any = None,
        episode_id: Any = None,
        step: Any = None,
        terminated: Any = None,
        truncated: Any = None,
        policy_id: Any = None,
        action_prob: Any = None,
        action_logp: Any = None,
        unit: Any = None,
        ends: str | None = None,
        roles: Mapping[str, str] | None = None,
        missing: str | None = None,
    ) -> Logs:
        """Logs from arrays with one entry per row.

        ``observation``: (n,) ids; an (n, k) integer array or a dict of columns: factors; (n, k) floats: a vector; a
        dict of words and floats: a mixed state.
        ``action``: (n,) ids or floats, or an (n, k) float array. What is None is derived as for files, see ``notes``.
        ``ends``: without terminated and truncated, what the last row of every episode is, as for ``read``; so are
        ``roles`` and ``missing``.
        """
        given = {
            "observation": observation,
            "action": action,
            "reward": reward,
            "next_observation": next_observation,
            "episode_id": episode_id,
            "step": step,
            "terminated": terminated,
            "truncated": truncated,
            "policy_id": policy_id,
            "action_prob": action_prob,
            "action_logp": action_logp,
            "unit": unit,
        }
        pieces = (ArrowTable(table_of_arrays(given), ("arrays",)),)
        state: dict[str, Any] = {"roles": check_roles(roles), "missing": check_missing(missing)}
        return cls([Source("arrays", pieces, ends=check_ends(ends), **state)])

    def with_unit(self, column: str) -> Logs:
        """The same logs whose episodes belong to what a column says, such as users."""
        if not isinstance(column, str):
            raise UsageError(f"unit is the name of a column of the logs, such as 'user_id', got {column!r}")
        if self._origin is not None and self.past is not None:
            return self._origin.with_unit(column).with_past(self.past.lags, self.past.history)
        found: Logs | None = self.recall("unit", column)
        if found is None:
            said = [replace(source, columns={**source.columns, "unit": column}) for source in self.sources]
            found = Logs(said).within(*self.bounds)
            self.keep("unit", column, found)
        return found

    def with_past(self, lags: int = 0, history: str | Sequence[str] | None = None) -> Logs:
        """The same logs whose states have the past of their episode beside them: see :mod:`mixope.logs.past`."""
        past = Past.of(lags, history)
        if past is None or past == self.past:
            return self
        base = self.recorded
        found: Logs | None = base.recall("past", past)
        if found is None:
            found = base._beside(past)
            base.keep("past", past, found)
        return found.within(*self.bounds)

    def _beside(self, past: Past) -> Logs:
        sources, names = put_beside(self, past)
        found = Logs(sources)
        known = self.schema.mapping.get("observation", ())
        words = (*((known,) if isinstance(known, str) else known), *names)
        schema = replace(found.schema, mapping={**self.schema.mapping, "observation": words})
        note = Advice(
            "the state has its past beside it (", *past.settings, f"): {'; '.join(names)}. Policies see it as logged"
        )
        said = {"notes": (*self.notes, note), "assumed": self.assumed, "bounds": self.bounds}
        found.__dict__.update(schema=schema, past=past, _origin=self.twin(), step_base=self.step_base, **said)
        return found

    @property
    def recorded(self) -> Logs:
        """These logs without the past beside their states: as they were recorded, and as policies see them."""
        return self if self._origin is None else self._origin

    def counted_alike(self, late: Sequence[str]) -> Logs:
        """The same logs with the steps of some loggers counted from the number from which the others count.

        ``late`` are loggers without a known start. Those of them whose episodes all begin one step later than the
        first count from 1, say, and the others from 0. The same logs where there are none.
        """
        found = explain_steps(self, late)
        if not found:
            return self
        other = object.__new__(Logs)
        plans = tuple(replace(plan, from_one=found) for plan in self.plans)
        note = (
            f"{', '.join(map(repr, found))} count{'s' if len(found) == 1 else ''} steps from {self.step_base + 1} and"
            f" others from {self.step_base}: the first step of each episode is taken as its start"
        )
        known = {"bounds": self.bounds, "_total": self._total, "step_base": self.step_base, "assumed": self.assumed}
        other.__dict__.update(sources=self.sources, plans=plans, schema=self.schema, notes=(*self.notes, note), **known)
        origin = None if self._origin is None else self._origin.counted_alike(late)
        other.__dict__.update(_kept={}, past=self.past, _origin=origin)
        return other

    def keep(self, what: str, key: object, found: Any) -> None:
        """Keep what was found out about these rows, for whoever asks the same again: one thing of each kind.

        It must not refer to these logs: they would be freed late.
        """
        self._kept[what] = (key, found)

    def recall(self, what: str, key: object) -> Any | None:
        """What was kept of a kind, if it was found in this way; a file that has changed meanwhile is an error."""
        known, found = self._kept.get(what, (None, None))
        if found is None or known != key:
            return None
        self.refuse_changed()
        return found

    def forget(self) -> None:
        """Drop what was kept: the memory is free, and the next question reads all rows again."""
        self._kept.clear()

    def twin(self) -> Logs:
        """The same logs, with nothing kept."""
        found = object.__new__(Logs)
        found.__dict__.update({**self.__dict__, "_kept": {}})
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}

    @property
    def in_memory(self) -> bool:
        """Whether all rows are held in memory already."""
        return all(source.in_memory for source in self.sources)

    @cached_property
    def step_base(self) -> int:
        """The smallest step of the whole log: episodes that begin there have a known start."""
        if self.in_memory:
            return self._base_of(least_step(plan) for plan in self.plans)
        with self.connect() as connection:
            return self._base(connection)

    def within(self, memory_limit: str | None, threads: int | None) -> Logs:
        """The same logs, read with no more than this; these themselves where nothing is said."""
        if (memory_limit, threads) in (self.bounds, (None, None)):
            return self
        found = self.twin()
        origin = None if self._origin is None else self._origin.within(memory_limit, threads)
        found.__dict__.update(bounds=(memory_limit, threads), _origin=origin)
        return found

    def connect(self) -> AbstractContextManager[Any]:
        """A connection to DuckDB that keeps to the bounds of these logs."""
        return connect(*self.bounds)

    def view(self, connection: Any) -> str:
        """Create a temporary view of the canonical rows on a DuckDB connection; returns its name."""
        name = unique("rows")
        self.refuse_changed()
        base = self._base(connection)
        with reading(self.name):
            connection.execute(f"CREATE TEMP VIEW {name} AS {view.rows(self.plans, self.schema, connection, base)}")
        return name

    def table(self, columns: Sequence[str] | None = None) -> Any:
        """The canonical rows, or some of their columns, as a ``pyarrow.Table``."""
        import pyarrow as pa

        wanted = known_columns(columns, self.schema.columns)
        self.refuse_changed()
        base = self.step_base if "start" in wanted else 0
        with reading(self.name):
            return pa.concat_tables([rows_of(plan, base, wanted) for plan in self.plans])

    def fragments(self, rows: int = ROWS, *, whole_episodes: bool = False) -> tuple[Fragment, ...]:
        """The rows of ``table``, in the same order, in parts of about ``rows`` rows or fewer where the format allows.

        A fragment can be pickled and opened by another process. Rows that derive something from each other (the next
        observation, say) stay in one fragment; with ``whole_episodes`` so do all that may share an episode.
        """
        if rows < 1:
            raise UsageError(f"a fragment has at least one row; got rows={rows}")
        return tuple(
            part
            for plan in self.plans
            for part in fragments_of(plan, self.schema, self.step_base, rows, whole_episodes=whole_episodes)
        )

    def loads(
        self, columns: Sequence[str], buckets: int, rows: int = ROWS
    ) -> tuple[tuple[Load, ...], tuple[Bucket, ...]]:
        """Some columns of the rows, to be brought together by episode: what to split, and the buckets it falls into."""
        return loads_of(self.plans, tuple(columns), self.step_base, buckets, rows)

    def apart(self, rows: int) -> tuple[Logs, ...]:
        """The same logs in parts of about ``rows`` rows or more, no two of which share an episode.

        These logs themselves where it is not known which of their files do.
        """
        if self.total_rows() <= rows:
            return (self,)
        runs: list[list[ReadingPlan]] = [[]]
        for part in (part for plan in self.plans for part in plans_apart(plan, rows)):
            if sum(sum(plan.source.counts()) for plan in runs[-1]) >= rows:
                runs.append([])
            runs[-1].append(part)
        return tuple(self._of(run) for run in runs)

    def _of(self, plans: Sequence[ReadingPlan]) -> Logs:
        """The same logs with some of their files only."""
        part = object.__new__(Logs)
        sources = tuple(plan.source for plan in plans)
        known = {"step_base": self.step_base, "bounds": self.bounds, "schema": self.schema, "notes": self.notes}
        known |= {"past": self.past, "_origin": self._origin}
        part.__dict__.update(sources=sources, plans=tuple(plans), assumed=self.assumed, _kept={}, **known)
        return part

    def batches(self, columns: Sequence[str] | None = None, rows: int = 65_536) -> Iterator[Any]:
        """The rows of ``table``, in the same order, as tables of at most ``rows``; one fragment is held at a time."""
        for fragment in self.fragments():
            held = fragment.table(columns)
            for low in range(0, held.num_rows, rows):
                yield held.slice(low, rows)

    @contextmanager
    def scanning(self) -> Iterator[None]:
        """Inside, the rows are read; a file that changes meanwhile is an error about it, whatever else went wrong."""
        self.refuse_changed()
        try:
            with timed(self.name):
                yield
        except Exception:  # of DuckDB, Arrow or ours: whichever, a file that changed is the better answer
            self.refuse_changed(thorough=True)
            raise
        self.refuse_changed()

    def refuse_changed(self, *, thorough: bool = False) -> None:
        """An error if a file is not what it was when it was opened."""
        for source in self.recorded.sources:
            refuse_changed(source.stamps, thorough=thorough)

    @property
    def name(self) -> str:
        """The sources in a few words, for messages."""
        first, *rest = (source.name for source in self.recorded.sources)
        return f"{first} and {len(rest)} more" if rest else first

    @property
    def home(self) -> str | None:
        """The library whose frame was given ("spark", "dask", "ray", "polars"); None for none, or several."""
        homes = {source.home for source in self.sources}
        return homes.pop() if len(homes) == 1 else None

    def total_rows(self) -> int:
        """Rows before any is dropped; from metadata where the format has it."""
        return self._total

    @cached_property
    def _total(self) -> int:
        return sum(sum(source.counts()) for source in self.sources)

    @property
    def sure_rows(self) -> int | None:
        """How many canonical rows there are, where it is known without looking that none is dropped; else None."""
        return self._total if all(plan.keeps_all for plan in self.plans) else None

    @property
    def asks_for_ends(self) -> bool:
        """Whether nothing says how the episodes of a source end, and their last rows are usable only if it is said."""
        return any(plan.asks for plan in self.recorded.plans)

    @property
    def drop_reason(self) -> str:
        """Why it may not be known what came after a row; one that says nothing else either is no canonical row."""
        derived = ["next_observation" in plan.derived for plan in self.recorded.plans]
        last = "the last row of an episode that did not terminate has no next observation"
        null = "next_observation is null on a row that is not terminated"
        return f"{last}, or {null}" if any(derived) and not all(derived) else (last if all(derived) else null)

    def inputs(self) -> list[dict[str, Any]]:
        """One record per file or table: path, rows, sha256. For provenance; computed once."""
        return [dict(record) for record in self._inputs]

    def fingerprint(self) -> str:
        """A short hash of the content and of how it is read: equal logs, equal fingerprint."""
        if self._origin is not None:
            return hashlib.sha256(f"{self._origin.fingerprint()} {self.past!r}".encode()).hexdigest()[:16]
        parts = [(os.path.basename(record["path"]), record["sha256"]) for record in self._inputs]
        said = [(s.label, sorted(s.columns.items()), s.done, s.ends) for s in self.sources]
        folders = [sorted(piece.constants.items()) for s in self.sources for piece in s.pieces]
        state = [(sorted(s.roles.items()), s.missing) for s in self.sources if s.roles or s.missing]
        known = (parts, said, folders, *([state] if state else []))
        return hashlib.sha256(repr(known).encode()).hexdigest()[:16]

    @cached_property
    def _inputs(self) -> tuple[dict[str, Any], ...]:
        if self._origin is not None:
            return self._origin._inputs
        records = tuple(record for source in self.sources for record in source.inputs())
        self.refuse_changed(thorough=True)
        return records

    def _base(self, connection: Any) -> int:
        """The same by SQL."""
        if "step_base" not in self.__dict__:
            query = view.steps(self.plans, connection)
            with reading(self.name):
                found = connection.execute(f"SELECT min(step) FROM ({query})").fetchall() if query else [(None,)]
            self.__dict__["step_base"] = self._base_of([found[0][0]])
        return int(self.__dict__["step_base"])

    def _base_of(self, found: Iterable[int | None]) -> int:
        """Steps that are counted begin at 0."""
        counted = [0] if any("step" in plan.derived for plan in self.plans) else []
        return min([step for step in found if step is not None] + counted, default=0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rows have once they are read; ``schema.mapping`` says what the file calls them."""
        return self.schema.columns

    def head(self, rows: int = 5) -> Any:
        """The first rows as a data frame of pandas, or else of polars; to be looked at."""
        if not isinstance(rows, int) or rows < 0:
            raise UsageError(f"head() takes how many rows to show, such as 5; got {rows!r}")
        first = next(self.batches(rows=max(rows, 1)), None)
        return as_frame((self.table() if first is None else first).slice(0, rows))

    def describe(self) -> Any:
        """What is in the logs: episodes, rewards, loggers, states and actions. The same as :func:`mixope.inspect`."""
        return inspected(self)

    def to_arrow(self, columns: Sequence[str] | None = None) -> Any:
        """All rows, or some of their columns, as a ``pyarrow.Table``: without those that are dropped."""
        return self.table(columns)

    def to_frame(self, columns: Sequence[str] | None = None) -> Any:
        """The same as a data frame of pandas, or else of polars."""
        return as_frame(self.table(columns))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the rows, as they were recorded, to one Parquet file that :func:`mixope.read` needs no words for.

        Rows that say nothing are left out. The past beside the state (``with_past``) is not written: add it again.
        """
        from mixope.logs.saving import save

        return save(self.recorded, path)

    def where(self, condition: str, *, rows: str = "all") -> Logs:
        """The episodes whose rows fit a condition in SQL over the columns of the file: ``"date >= '2026-10-01'"``.

        Episodes stay whole: one is taken if all of its rows fit, or with ``rows="any"`` if any of them does. The
        chosen rows are held in memory.
        """
        return choosing.where(self.recorded, condition, rows)._again(self.past)

    def split(self, share: float = 0.5, *, by: str | None = None, seed: int = 0) -> tuple[Logs, Logs]:
        """Two logs: a share of the episodes, drawn by chance, and all others; the same seed gives the same two.

        ``by``: "episode", "unit" (all episodes of a user stay together), or the column that names the unit. Without
        it, units where these logs have them. The rows are held in memory.
        """
        first, second = choosing.split(self.recorded, share, by, seed)
        return first._again(self.past), second._again(self.past)

    def __add__(self, other: Logs) -> Logs:
        """Both, as ``read(a, b)`` reads them: the same number in each is two episodes."""
        if not isinstance(other, Logs):
            return NotImplemented
        if self.past != other.past:
            raise UsageError("Logs with different pasts beside their states cannot be added; add them, then with_past")
        return Logs([*self.recorded.sources, *other.recorded.sources]).within(*self.bounds)._again(self.past)

    def _again(self, past: Past | None) -> Logs:
        return self if past is None else self.with_past(past.lags, past.history)

    def of_sources(self, sources: Sequence[Source]) -> Logs:
        """Logs of some rows of these, read within the same bounds."""
        return Logs(sources).within(*self.bounds)

    def __len__(self) -> int:
        """Rows of the files, before any is dropped."""
        return self.total_rows()

    def __bool__(self) -> bool:
        """There always is something; nothing is counted to know it."""
        return True

    def __dir__(self) -> list[str]:
        """What is of use from outside: completion has nothing else."""
        return sorted({*(name for name in super().__dir__() if name.startswith("__")), *SHOWN})

    def __str__(self) -> str:
        return in_words(self)

    def __repr__(self) -> str:
        schema = self.schema
        return f"Logs({self.name}: observation {schema.observation_kind}, action {schema.action_kind})"

    def _repr_html_(self) -> str:
        return str(render("card", self))


def _one_short_episode(source: Source) -> bool:
    """Whether a source holds a single episode of a few rows, such as may happen twice."""
    if sum(source.counts()) > SHORT:
        return False
    episodes = Logs([source]).table(EPISODE_KEYS).group_by(list(EPISODE_KEYS)).aggregate([])
    return bool(episodes.num_rows == 1)
