"""From what a user typed to what the library takes: logs, policies, an engine, an estimator."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixope.base.errors import UsageError, about
from mixope.cli.options import Ending, FormatName, FormName, LawName, MissingName, OutputsName, UnknownActions

if TYPE_CHECKING:
    from mixope.engines import Engine
    from mixope.estimators import Estimator
    from mixope.logs import Logs
    from mixope.policies import Policy

STANDARD = "-"
"""What standard input is called."""
NETWORKS = (".onnx", ".pt", ".pth")
_INTEGER = re.compile(r"-?\d+")
_SIZE = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?)?B", re.IGNORECASE)


def read_logs(
    paths: Sequence[str],
    columns: Sequence[str],
    done: Ending | None,
    ends: Ending | None,
    roles: Sequence[str] = (),
    missing: MissingName | None = None,
    format: FormatName | None = None,
    encoding: str | None = None,
) -> Logs:
    """The logs, with the user's words on their columns."""
    from mixope.logs import read

    words = (("done", done), ("ends", ends), ("missing", missing), ("format", format))
    said: dict[str, Any] = {name: word.value for name, word in words if word is not None}
    said["encoding"] = encoding
    return read(*_sources(paths), columns=parse_columns(columns), roles=parse_roles(roles), **said)


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
class PolicyWords:
    """What was typed about policies besides where they are."""

    unknown: UnknownActions = UnknownActions.error
    trust: bool = False
    outputs: OutputsName | None = None
    default: str | None = None
    columns: Sequence[str] = ()
    actions: str | None = None
    epsilon: float | None = None
    scale: float | None = None
    law: LawName | None = None
    logs: Logs | None = None
    """Whose names for states and actions a table may have."""

    def for_loggers(self) -> PolicyWords:
        """Without what is about the target alone."""
        return PolicyWords(self.unknown, self.trust, self.outputs, logs=self.logs)

    def options(self, path: str) -> dict[str, Any]:
        """As keywords; ``outputs`` for networks only."""
        return {
            "unknown_actions": self.unknown.value,
            "trust": self.trust,
            "outputs": self.outputs.value if self.outputs is not None and is_network(path) else None,
            "columns": parse_columns(self.columns, "--target-column") or None,
            "actions": None if self.actions is None else _typed(self.actions.split(",")),
            "epsilon": self.epsilon,
            "scale": self.scale,
            "law": None if self.law is None else self.law.value,
            "logs": self.logs,
        }


def _typed(words: Sequence[str]) -> list[Any]:
    """Ids as words, or as integers where all of them look like one."""
    stripped = [word.strip() for word in words]
    return [int(word) for word in stripped] if all(map(_INTEGER.fullmatch, stripped)) else stripped


def read_target(path: str, words: PolicyWords) -> Policy:
    """A policy; the default action in the type of the policy's actions."""
    from mixope.policies import read_policy

    options, default = words.options(path), words.default
    if default is None or default == "uniform":
        return read_policy(path, default=default, **options)
    listed = getattr(read_policy(path, **options), "actions", None)
    numbered = listed is not None and listed.dtype.kind in "iu" and _INTEGER.fullmatch(default)
    return read_policy(path, default=int(default) if numbered else default, **options)


def read_one_of(named: Mapping[str, str], name: str, words: PolicyWords) -> Policy:
    """The same of one of several targets, whose errors name it."""
    with about(f"target {name!r}") if len(named) > 1 else nullcontext():
        return read_target(named[name], words)


def name_targets(given: Sequence[str]) -> dict[str, str]:
    """``name=path`` or ``path``, whose name is that of the file."""
    named: dict[str, str] = {}
    for text in given:
        label, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            label, path = (text.rpartition(":")[2] if _is_reference(text) else Path(text).name.partition(".")[0]), text
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


def _is_reference(text: str) -> bool:
    from mixope.policies.references import is_reference

    return is_reference(text)


def read_loggers(given: Sequence[str], table: str | None, words: PolicyWords) -> dict[str, Policy]:
    """The known loggers by label, from single files and from several at once."""
    found = {} if table is None else _several(table, words)
    for text in given:
        label, path = _pair("--logger", text, "LABEL=FILE, such as old=old.csv")
        if label in found:
            raise UsageError(f"the policy of logger {label!r} is given twice")
        found[label] = read_target(path, words.for_loggers())
    return found


def _several(source: str, words: PolicyWords) -> dict[str, Policy]:
    """A table with a column policy_id, or a dictionary of policies in a module."""
    from mixope.policies import read_policies, read_policy

    if not _is_reference(source) or Path(source).exists():
        return dict(read_policies(source, unknown_actions=words.unknown.value, logs=words.logs))
    from mixope.policies.references import resolve

    named = resolve(source)
    if not isinstance(named, Mapping) or not named:
        raise UsageError(f"--loggers {source}: expected a dictionary of policies by label, got {type(named).__name__}")
    return {str(label): read_policy(policy) for label, policy in named.items()}


def make_engine(name: str | None, memory_limit: str | None, threads: int | None) -> Engine | None:
    """The engine asked for; a limit or a number of threads alone asks for the embedded one."""
    from mixope.engines import make

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


def make_estimator(name: str, form: FormName, logs: Logs | None = None) -> str | Estimator:
    """An estimator by name, or a state-ratio estimator in the paper's form, which counts states."""
    if form is FormName.general:
        return name
    if logs is not None and not logs.schema.discrete:
        raise UsageError("--form paper needs states that can be counted; these logs have vectors")
    from mixope.estimators import REGISTRY, make

    name = "emp" if name == "auto" else name
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
