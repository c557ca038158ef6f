"""A network in an ``.onnx`` file as a policy, run by ONNX Runtime.

The network has one input, a batch of observations, or one input per column of a mixed state, by name. Its outputs mean
one of

    probabilities   (n, A)  the action laws                     logits        (n, A)  their logarithms up to a constant
    mean_std        (n, d) and (n, d), or (n, 2d)               mean_log_std  the same with log σ

``outputs`` says which. It may be left out where the outputs bear just these names: ``probabilities``, ``logits``, or
``mean`` with ``std`` or ``log_std``. Other outputs, a label or a value, are passed over as long as the ones needed can
be told by their names. The policy holds the content of the file, so it can be sent to workers and outlive the file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mixope.adapters.networks import OUTPUTS, check_meaning, is_discrete, network_policy
from mixope.adapters.onnx_contents import check_contents
from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import Advice, DataError, MissingExtra, Setting, UsageError
from mixope.logs.sources.patience import heard
from mixope.policies.gaussian import Law
from mixope.policies.kinds import NETWORK, Kind, Wishes, is_path
from mixope.policies.laws import UnknownActions
from mixope.policies.protocol import Policy
from mixope.policies.table_files import existing

BATCH = 2**16
SECONDS = 600.0
"""What a batch may take."""
TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}

WORDS = "tensor(string)"


def onnx_policy(
    path: str | Path,
    *,
    outputs: str | None = None,
    actions: Any = None,
    unknown_actions: UnknownActions = "error",
    low: Any = None,
    high: Any = None,
    law: Law = "plain",
) -> Policy:
    """The policy in the file.

    :param outputs: what the network gives, a key of ``OUTPUTS``; by their names if absent.
    :param actions: labels of the columns of a discrete policy; 0 … A−1 if absent.
    :param unknown_actions: for discrete policies, as for a table.
    :param low: with ``high``, the box of a continuous policy's actions.
    :param law: what was recorded of a continuous action: the ``"plain"`` draw, the ``"clipped"`` one, or its tanh
        (``"squashed"``, within ±1 if there is no box); see :mod:`~mixope.policies.gaussian`.
    """
    network = NetworkFile(Path(path).read_bytes(), str(path))
    meaning = _meaning(network, outputs)
    width = _width(network, meaning) if is_discrete(meaning) and actions is None else None
    options: dict[str, Any] = {"unknown_actions": unknown_actions, "low": low, "high": high, "law": law}
    return network_policy(network, meaning, width, actions=actions, **options)


@dataclass(frozen=True)
class NetworkFile:
    """The content of a file and what it was called; two are the same policy where the content is."""

    content: bytes
    where: str = "network"

    def __reduce__(self) -> tuple[type[NetworkFile], tuple[bytes]]:
        # Fingerprints pickle what a function holds: a file that was moved or sent away must keep its own.
        return NetworkFile, (self.content,)

    def output_names(self) -> list[str]:
        """Names of the outputs that are floats."""
        kept = ("tensor(float)", "tensor(double)")
        return [output.name for output in _session(self.content, self.where).get_outputs() if output.type in kept]

    def answers(self, meaning: str, observations: AnyArray) -> list[FloatArray]:
        """The outputs that have this meaning."""
        return self.run(_chosen(self, meaning), observations)

    def run(self, names: Sequence[str], observations: AnyArray) -> list[FloatArray]:
        """The outputs of these names, in double precision."""
        session = _session(self.content, self.where)
        rows, feeds = len(observations), _feeds(session.get_inputs(), observations, self.where)
        cuts = [{name: fed[i : i + BATCH] for name, fed in feeds.items()} for i in range(0, max(rows, 1), BATCH)]
        try:
            parts = [self._ran(session, names, cut) for cut in cuts]
        except DataError:
            raise
        except Exception as error:  # ONNX Runtime has no common base for its errors
            raise DataError("the network cannot be run", where=self.where, got=_said(error)) from None
        answers = [np.concatenate(part).astype(np.float64) for part in zip(*parts, strict=True)]
        for name, answer in zip(names, answers, strict=True):
            _check_output(name, answer, rows, self.where)
        return answers

    def _ran(self, session: Any, names: Sequence[str], fed: dict[str, AnyArray]) -> Any:
        """One batch; a network may hold a loop without end, and would hear no signal."""
        options = _runtime().RunOptions()
        options.log_severity_level = 4

        def stop() -> None:
            options.terminate = True

        return heard(lambda: session.run(list(names), fed, options), stop, SECONDS, lambda: _endless(self.where))


def _endless(where: str) -> DataError:
    return DataError(
        "the network does not come to an end",
        where=where,
        expected=f"{BATCH:,} rows within {SECONDS:,.0f} seconds",
        hint="if it is only slow, write what it gives for the states of the logs to a table",
    )


def _width(network: NetworkFile, meaning: str) -> int:
    """The number of actions, as the file declares it."""
    (name,) = _chosen(network, meaning)
    shapes = {output.name: output.shape for output in _session(network.content, network.where).get_outputs()}
    if len(shapes[name]) != 2 or not isinstance(shapes[name][1], int):
        raise UsageError(Advice(f"{network.where} does not declare how many actions it has; ", Setting("actions")))
    return int(shapes[name][1])


def _meaning(network: NetworkFile, outputs: str | None) -> str:
    check_meaning(outputs)
    names = network.output_names()
    fitting = [meaning for meaning, words in OUTPUTS.items() if set(words) <= set(names)]
    if outputs is None and len(fitting) != 1:
        given = ", ".join(names) or "(none that are floats)"
        raise UsageError(
            Advice(
                f"cannot tell what {network.where} gives from its outputs {given}; say ",
                Setting("outputs"),
                f", one of {', '.join(OUTPUTS)}",
            )
        )
    meaning = outputs or fitting[0]
    _chosen(network, meaning)
    return meaning


def _chosen(network: NetworkFile, meaning: str) -> list[str]:
    """The outputs to read: those of the right names, otherwise all there are, if their number is right."""
    names, words = network.output_names(), OUTPUTS[meaning]
    if set(words) <= set(names):
        return list(words)
    if len(names) in {1, len(words)}:
        return names
    raise DataError(
        f"cannot tell which outputs of the network are the {' and '.join(words)}",
        where=network.where,
        expected=f"outputs named {' and '.join(words)}, or {len(words)} in all",
        got=", ".join(names) or "no output of floats",
    )


SILENT = "ORT_DISABLE_TELEMETRY"


def _runtime() -> Any:
    """ONNX Runtime, of which some versions tell their makers of each use unless it is told not to while it loads."""
    before = os.environ.get(SILENT)
    os.environ[SILENT] = before or "1"
    try:
        found = import_module("onnxruntime")
    except ImportError as error:
        raise MissingExtra("onnx", "reading a policy from an .onnx file") from error
    finally:
        if before is None:
            del os.environ[SILENT]
    if before is None:
        found.disable_telemetry_events()  # where the program that we are part of had loaded it before
    return found


@lru_cache(maxsize=8)
def _session(content: bytes, where: str) -> Any:
    """One session per file; not part of the policy, which must be fit for pickling."""
    onnxruntime = _runtime()
    check_contents(content, where)
    try:
        session = _started(onnxruntime, content)
        inputs = session.get_inputs()
    except Exception as error:  # ONNX Runtime has no common base for its errors
        raise DataError("the file is no network that can be run", where=where, got=_said(error)) from None
    vector = len(inputs) == 1 and inputs[0].type in TYPES and len(inputs[0].shape) == 2
    columns = all(entry.type in (*TYPES, WORDS) and _is_column(entry.shape) for entry in inputs)
    if not inputs or not (vector or columns):
        raise DataError(
            "the network does not take a batch of observations",
            where=where,
            expected="one input (n, d) of numbers, or one input (n, 1) per column of a mixed state",
            got=_listed(inputs),
        )
    return session


def _is_column(shape: Sequence[Any]) -> bool:
    return len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)


def _listed(inputs: Sequence[Any]) -> str:
    return ", ".join(f"{entry.name}: {entry.type} {entry.shape}" for entry in inputs)


def _feeds(inputs: Sequence[Any], observations: AnyArray, where: str) -> dict[str, AnyArray]:
    """What goes into every input: a batch of vectors, or the columns of mixed states by name."""
    known = observations.dtype.names
    if known:
        strange = [entry.name for entry in inputs if entry.name not in known]
        if strange:
            raise DataError(
                "an input of the network is no column of the states",
                where=where,
                expected=f"inputs among {', '.join(known)}",
                got=_listed(inputs),
                hint="export the network with one input per column, by the names that columns have in the logs",
            )
        return {entry.name: _column(entry, observations[entry.name], where) for entry in inputs}
    if len(inputs) != 1:
        raise DataError(
            "the network takes columns by name, and the states are one vector",
            where=where,
            expected="one input (n, d) of numbers",
            got=_listed(inputs),
        )
    rows = np.asarray(observations[:, None] if np.ndim(observations) == 1 else observations)
    _check_input(inputs[0], rows, where)
    return {inputs[0].name: rows.astype(TYPES[inputs[0].type])}


def _column(entry: Any, values: AnyArray, where: str) -> AnyArray:
    """One column in the type and shape of its input."""
    words = values.dtype.kind in "UO"
    if words != (entry.type == WORDS):
        raise DataError(
            "a column of the states is not what the network takes",
            where=where,
            column=entry.name,
            expected="words" if entry.type == WORDS else "numbers",
            got="words" if words else "numbers",
        )
    cast = values.astype(object) if words else values.astype(TYPES[entry.type])
    return cast if len(entry.shape) == 1 else cast[:, None]


def _started(onnxruntime: Any, content: bytes) -> Any:
    """A session that says in errors, and never on the terminal, what is wrong; all its names can be read."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.load_model_format", "ONNX")
    providers = ["CPUExecutionProvider"]  # there is no other to fall back to, and the attempt would be printed
    session = onnxruntime.InferenceSession(content, options, providers=providers, enable_fallback=0)
    for part in (*session.get_inputs(), *session.get_outputs()):
        str(part)
    return session


def _said(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _check_input(entry: Any, rows: AnyArray, where: str) -> None:
    batch, width = entry.shape
    if isinstance(batch, int):
        raise DataError(
            "the network takes batches of one size only",
            where=where,
            expected="a free first axis",
            got=f"{batch} rows",
            hint="export it with a dynamic batch axis",
        )
    if rows.ndim != 2 or rows.dtype.kind not in "fiub" or (isinstance(width, int) and rows.shape[1] != width):
        raise DataError(
            "the observations do not fit the network",
            where=where,
            expected=f"numbers of shape (n, {width})",
            got=f"{rows.dtype} of shape {rows.shape}",
        )


def _check_output(name: str, answer: FloatArray, count: int, where: str) -> None:
    if answer.ndim not in (1, 2) or len(answer) != count or not np.isfinite(answer).all():
        raise DataError(
            f"the network's output {name!r} cannot be used",
            where=where,
            expected=f"finite numbers, one row for each of {count} observations",
            got=f"shape {answer.shape}, {int((~np.isfinite(answer)).sum())} not finite",
        )


def _made(source: Any, wishes: Wishes) -> Policy:
    said = wishes.some("outputs", "actions", "unknown_actions")
    return onnx_policy(existing(Path(source)), law=wishes.law or "plain", **said)


KIND = Kind("network", is_path(".onnx"), _made, NETWORK)
