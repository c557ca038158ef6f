"""From what a user typed to what the library takes: logs, policies, an engine, an estimator."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixope.base.errors import UsageError, about
from mixope.cli.options import (
    Answering,
    ColumnOptions,
    Files,
    FormName,
    Intervals,
    Loggers,
    OutputsName,
    PolicyFiles,
    TargetTable,
    Workers,
)

if TYPE_CHECKING:
    from mixope.engines import Engine
    from mixope.estimators import Estimator, Memory
    from mixope.logs import Logs
    from mixope.policies import Policy
    from mixope.uncertainty import IntervalChoice

STANDARD = "-"
"""What standard input is called."""
NETWORKS = (".onnx", ".pt", ".pth")
_INTEGER = re.compile(r"-?\d+")
_SIZE = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?)?B", re.IGNORECASE)


def read_logs(paths: Sequence[str], columns: ColumnOptions, files: Files, unit: str | None = None) -> Logs:
    """The logs, with the user's words on their columns."""
    from mixope.logs import read

    words = (("done", columns.done), ("ends", columns.ends), ("missing", columns.missing))
    said: dict[str, Any] = {name: word.value for name, word in words if word is not None}
    said |= {name: value for name, value in files.keywords().items() if value is not None}
    named = parse_columns(columns.column)
    if unit is not None:
        if "unit" in named:
            raise UsageError("the unit is named twice: by --unit, and by --column unit=")
        named["unit"] = unit
    return read(*_sources(paths), columns=named, roles=parse_roles(columns.role), **said)


def open_table(paths: Sequence[str]) -> Any:
    """One table of some files, or of standard input."""
    found = _sources(paths)
    return found[0] if len(found) == 1 else found


def _sources(paths: Sequence[str]) -> list[Any]:
    """The paths as they are; ``-``, which is standard input, as the stream, with its label where it has one."""
    streams = [path for path in paths if path == STANDARD or path.endswith(f"={STANDARD}")]
    if len(streams) > 1:
        raise UsageError(f"standard input can be read once, and it is named {len(streams)} times: {' '.join(streams)}")
    if streams and sys.stdin.isatty():
        raise UsageError("- is standard input, and nothing is piped into it: … | mixope inspect - --format csv")
    return [_stream(path) if path in streams else path for path in paths]


def _stream(path: str) -> Any:
    label = path.rpartition("=")[0]
    return {label: sys.stdin.buffer} if label else sys.stdin.buffer


def parse_roles(given: Sequence[str]) -> dict[str, str]:
    """``column=role``."""
    roles: dict[str, str] = {}
    for text in given:
        name, role = _pair("--role", text, "COLUMN=ROLE, such as age=number")
        if name in roles:
            raise UsageError(f"--role {name} is given twice")
        roles[name] = role
    return roles


def parse_columns(given: Sequence[str], option: str = "--column") -> dict[str, str | list[str] | None]:
    """``name=column``, ``name=column,column`` (factors), ``name=`` (ignore it)."""
    columns: dict[str, str | list[str] | None] = {}
    for text in given:
        name, value = _pair(option, text, "NAME=COLUMN, such as action=a")
        if name in columns:
            raise UsageError(f"{option} {name} is given twice")
        parts = [part.strip() for part in value.split(",")]
        columns[name] = None if value == "" else parts[0] if len(parts) == 1 else parts
    return columns


@dataclass(frozen=True)
class PolicyReader:
    """Reads policies by what was typed about them; ``logs`` are those whose names for states and actions they have."""

    files: PolicyFiles
    logs: Logs
    table: TargetTable | None = None
    outputs: OutputsName | None = None

    def target(self, path: str) -> Policy:
        """A policy; the default action in the type of the policy's actions."""
        from mixope.policies import read_policy

        options, default = self._options(path), None if self.table is None else self.table.target_default
        if default is None or default == "uniform":
            return read_policy(path, default=default, **options)
        listed = getattr(read_policy(path, **options), "actions", None)
        numbered = listed is not None and listed.dtype.kind in "iu" and _INTEGER.fullmatch(default)
        return read_policy(path, default=int(default) if numbered else default, **options)

    def targets(self, named: Mapping[str, str]) -> dict[str, Policy]:
        """Several, whose errors name them."""
        found = {}
        for name, path in named.items():
            with about(f"target {name!r}") if len(named) > 1 else nullcontext():
                found[name] = self.target(path)
        return found

    def loggers(self, given: Loggers) -> dict[str, Policy]:
        """The known loggers by label, from single files and from several at once."""
        found = {} if given.loggers is None else self._several(given.loggers)
        for text in given.logger:
            label, path = _pair("--logger", text, "LABEL=FILE, such as old=old.csv")
            if label in found:
                raise UsageError(f"the policy of logger {label!r} is given twice")
            found[label] = replace(self, table=None).target(path)
        return found

    def _several(self, source: str) -> dict[str, Policy]:
        """A table with a column policy_id, or a dictionary of policies in a module."""
        from mixope.policies import read_policies, read_policy
        from mixope.policies.references import is_reference, resolve

        if not is_reference(source) or Path(source).exists():
            return dict(read_policies(source, unknown_actions=self.files.unknown_actions.value, logs=self.logs))
        named = resolve(source)
        if not isinstance(named, Mapping) or not named:
            raise UsageError(
                f"--loggers {source}: expected a dictionary of policies by label, got {type(named).__name__}"
            )
        return {str(label): read_policy(policy) for label, policy in named.items()}

    def _options(self, path: str) -> dict[str, Any]:
        """As keywords; ``outputs`` for networks only."""
        common = {
            "unknown_actions": self.files.unknown_actions.value,
            "trust": self.files.trust,
            "outputs": self.outputs.value if self.outputs is not None and is_network(path) else None,
            "logs": self.logs,
        }
        table = self.table
        if table is None:
            return common
        return {
            **common,
            "columns": parse_columns(table.target_column, "--target-column") or None,
            "actions": None if table.target_actions is None else _typed(table.target_actions.split(",")),
            "epsilon": table.target_epsilon,
            "scale": table.target_scale,
            "law": None if table.target_law is None else table.target_law.value,
        }


def _typed(words: Sequence[str]) -> list[Any]:
    """Ids as words, or as integers where all of them look like one."""
    stripped = [word.strip() for word in words]
    return [int(word) for word in stripped] if all(map(_INTEGER.fullmatch, stripped)) else stripped


def name_targets(given: Sequence[str]) -> dict[str, str]:
    """``name=path`` or ``path``, whose name is that of the file."""
    from mixope.policies.references import is_reference

    named: dict[str, str] = {}
    for text in given:
        label, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            label, path = (text.rpartition(":")[2] if is_reference(text) else Path(text).name.partition(".")[0]), text
        if not label or not path:
            raise UsageError(f"--target takes a file or NAME=FILE, got {text!r}")
        if label in named:
            raise UsageError(f"two targets are called {label!r}; name them: --target old=… --target new=…")
        named[label] = path
    return named


def is_network(path: str) -> bool:
    """Whether a policy is a network in a file."""
    return path.lower().endswith(NETWORKS)


def check_outputs(outputs: OutputsName | None, policies: Sequence[str]) -> None:
    """``--outputs`` without a network is a mistake."""
    if outputs is not None and not any(is_network(path) for path in policies):
        raise UsageError(f"--outputs is for networks ({', '.join(NETWORKS)}), and no policy given here is one")


def make_engine(workers: Workers) -> Engine | None:
    """The engine asked for; a limit or a number of threads alone asks for the embedded one."""
    from mixope.engines import make

    name, memory_limit, threads = workers.engine, workers.memory_limit, workers.threads
    if memory_limit is not None and not _SIZE.fullmatch(memory_limit.strip()):
        raise UsageError(f"--memory-limit takes a size such as 500MB or 2GB, got {memory_limit!r}")
    said = {"memory_limit": memory_limit, "threads": threads}
    options: dict[str, Any] = {option: value for option, value in said.items() if value is not None}
    if name is None:
        return make("embedded", **options) if options else None
    if options and name == "memory":
        raise UsageError("--memory-limit and --threads are for --engine embedded, and for engines of several workers")
    if "threads" in options and name != "embedded":
        options["workers"] = options.pop("threads")
    return make(name, **options)


def check_checkpoint(folder: Path | None) -> None:
    """Before anything is read: a folder that cannot keep what is found is told of at once."""
    if folder is not None:
        from mixope.engines.kept import Kept

        Kept(folder)


def choose_interval(given: Intervals, progress: Callable[[int, int], None] | None = None) -> IntervalChoice:
    """The kind of interval; a wrong name is told before anything is read."""
    from mixope.uncertainty import choose_interval as choose

    return choose(given.interval, given.replicates, given.jobs, progress, given.planned)


def check_answering(given: Answering, outputs: OutputsName | None, policies: Sequence[str]) -> Engine | None:
    """What can be known to be wrong before anything is read; the engine asked for."""
    from mixope.solvers.devices import check_device

    choose_interval(given.intervals)
    check_device(given.device.value)
    read_memory(given.memory)
    check_outputs(outputs, [*policies, *given.loggers.logger])
    check_checkpoint(given.checkpoint)
    return make_engine(given.workers)


def read_memory(given: str | None) -> Memory | None:
    """A number of steps, or auto."""
    from mixope.estimators import check_memory

    return None if given is None else check_memory(int(given) if given.isdecimal() else given)


def make_estimator(name: str, form: FormName, logs: Logs | None = None) -> str | Estimator:
    """An estimator by name, or a state-ratio estimator in the paper's form, which counts states."""
    if form is FormName.general:
        return name
    if logs is not None and not logs.schema.discrete:
        raise UsageError("--form paper needs states that can be counted; these logs have vectors")
    from mixope.estimators import REGISTRY, canonical, make

    name = "emp" if canonical(name) == "auto" else canonical(name)
    make(name)
    if REGISTRY[name].family != "state ratio":
        known = [other for other, entry in REGISTRY.items() if entry.family == "state ratio"]
        raise UsageError(f"--form paper is for state-ratio estimators ({', '.join(known)}), not for {name!r}")
    return REGISTRY[name].make(form="paper")


def _pair(option: str, text: str, expected: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{option} takes {expected}; got {text!r}")
    return name.strip(), value.strip()
