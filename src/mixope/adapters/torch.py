"""A PyTorch module as a policy, in the words that ONNX files use (:mod:`~mixope.adapters.networks`).

The module takes a batch of observations and gives logits, probabilities, or means and (log) standard deviations: as
one tensor, as two, or by name in a dict. It is run in evaluation mode, without gradients, on its own device, in pieces.
Vectors go in as floats of the module's precision; ids and factors likewise, or as integers where the module embeds.

Agents in the manner of CleanRL, modules with ``get_action_and_value(observations, actions)``, give the logarithm of the
probability as their second value and need no words. PyTorch is imported only when a module is run, which has imported
it before: modules are recognised by the name of their base class.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mixope.adapters.networks import OUTPUTS, check_meaning, is_discrete, network_policy
from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import Advice, DataError, MissingExtra, Setting, UsageError
from mixope.base.threads import Shared
from mixope.policies.callables import CallablePolicy
from mixope.policies.fingerprints import array_bytes
from mixope.policies.gaussian import Law
from mixope.policies.kinds import NETWORK, Kind, Wishes
from mixope.policies.laws import UnknownActions, as_numbers
from mixope.policies.marks import is_torch
from mixope.policies.own_code import running
from mixope.policies.protocol import Policy

BATCH = 2**14


def from_torch(
    module: Any,
    *,
    outputs: str | None = None,
    actions: Any = None,
    unknown_actions: UnknownActions = "error",
    low: Any = None,
    high: Any = None,
    law: Law = "plain",
) -> Policy:
    """The policy of a PyTorch module.

    :param module: a ``torch.nn.Module``, also a scripted one, or an agent with ``get_action_and_value``.
    :param outputs: what the module gives: ``"probabilities"``, ``"logits"``, ``"mean_std"`` or ``"mean_log_std"``. Not
        for agents with ``get_action_and_value``.
    :param actions: labels of the columns of a discrete policy; 0 … A−1 if absent.
    :param unknown_actions: for discrete policies, as for a table.
    :param low: with ``high``, the box of a continuous policy's actions.
    :param law: what was recorded of a continuous action, as for :func:`~mixope.adapters.onnx.onnx_policy`.
    """
    if not is_torch(module):
        raise UsageError(f"expected a module of PyTorch, got {type(module).__name__}")
    check_meaning(outputs)
    if outputs is None and hasattr(module, "get_action_and_value"):
        return CallablePolicy(Agent(module), actions, log=True, unknown_actions=unknown_actions)
    if outputs is None:
        asked = f"cannot tell what {type(module).__name__} gives; say "
        raise UsageError(Advice(asked, Setting("outputs"), f", one of {', '.join(OUTPUTS)}"))
    network = TorchNetwork(module)
    width = network.width(outputs) if is_discrete(outputs) and actions is None else None
    options: dict[str, Any] = {"unknown_actions": unknown_actions, "low": low, "high": high, "law": law}
    return network_policy(network, outputs, width, actions=actions, **options)


def run_in_pieces(module: Any, ask: Callable[..., Any], *columns: AnyArray) -> list[FloatArray]:
    """What ``ask`` gives for pieces of the columns, one array per output: in evaluation mode and without gradients."""
    torch = import_module("torch")
    rows = len(columns[0])
    with evaluating(module), torch.no_grad(), running(f"the module {type(module).__name__}"):
        parts = [ask(*(c[i : i + BATCH] for c in columns)) for i in range(0, max(rows, 1), BATCH)]
    outputs = [[as_numbers(tensor, "outputs of the module") for tensor in part] for part in parts]
    return [np.concatenate(part) for part in zip(*outputs, strict=True)]


@contextmanager
def _in_evaluation(module: Any) -> Iterator[None]:
    modes = [(part, bool(part.training)) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:  # from the outside in: what is inside has the last word on itself
            part.train(mode)


evaluating = Shared(_in_evaluation)
"""A module in evaluation mode until the last thread that asks it has its answer; then every part is as it was."""


def as_tensor(module: Any, values: AnyArray) -> Any:
    """Observations on the device of a module: integers where it embeds them, otherwise floats of its precision."""
    torch = import_module("torch")
    first = next((p for p in module.parameters() if p.is_floating_point()), torch.zeros(1))
    whole = values.dtype.kind in "iub"
    if whole and any(type(part).__name__ in ("Embedding", "EmbeddingBag") for part in module.modules()):
        return torch.as_tensor(values.astype(np.int64), device=first.device)
    if values.dtype.kind not in "fiub":
        raise DataError(
            f"the module {type(module).__name__} takes numbers",
            expected="observations of numbers",
            got=f"type {values.dtype}",
            hint="give a function of the states that turns them into tensors",
        )
    rows = values[:, None] if values.ndim == 1 else values
    return torch.as_tensor(np.ascontiguousarray(rows, dtype=np.float64), device=first.device, dtype=first.dtype)


def module_parts(module: Any) -> Iterator[bytes]:
    """What a module does: its layout and its parameters."""
    yield f"{type(module).__qualname__} {module}".encode()
    for name, tensor in module.state_dict().items():
        yield name.encode() + array_bytes(as_numbers(tensor, "parameters"))


@dataclass(frozen=True, eq=False)
class TorchNetwork:
    """A module by its outputs."""

    module: Any

    @property
    def where(self) -> str:
        """The name of its class."""
        return type(self.module).__name__

    def content_parts(self) -> Iterator[bytes]:
        """For fingerprints."""
        return module_parts(self.module)

    def answers(self, meaning: str, observations: AnyArray) -> list[FloatArray]:
        """The tensors that have this meaning, checked for their number of rows."""
        found = run_in_pieces(self.module, lambda rows: self._outputs(meaning, rows), observations)
        for answer in found:
            if answer.ndim not in (1, 2) or len(answer) != len(observations) or not np.isfinite(answer).all():
                raise DataError(
                    "an output of the module cannot be used",
                    where=self.where,
                    expected=f"finite numbers, one row for each of {len(observations)} observations",
                    got=f"shape {answer.shape}, {int((~np.isfinite(answer)).sum())} not finite",
                )
        return found

    def width(self, meaning: str) -> int | None:
        """How many actions a module gives, by its answer for a row of zeros as wide as its first layer."""
        matrix = next((p for p in self.module.parameters() if p.ndim == 2), None)
        if matrix is None:
            return None
        try:
            (answer,) = self.answers(meaning, np.zeros((1, matrix.shape[1])))
        except DataError:
            return None
        return int(answer.shape[1]) if answer.ndim == 2 else None

    def _outputs(self, meaning: str, rows: AnyArray) -> list[Any]:
        tensor = as_tensor(self.module, rows)
        answer = self.module(tensor)
        words = OUTPUTS[meaning]
        if isinstance(answer, Mapping):
            missing = [word for word in words if word not in answer]
            if missing:
                got = ", ".join(map(str, answer))
                raise DataError(f"the module gives no {missing[0]!r}", where=self.where, expected=str(words), got=got)
            answer = [answer[word] for word in words]
        several = list(answer) if isinstance(answer, tuple | list) else [answer]
        if len(several) not in {1, len(words)}:
            raise DataError(
                f"cannot tell which outputs of the module are the {' and '.join(words)}",
                where=self.where,
                expected=f"{len(words)} in all, or a dict with these names",
                got=f"{len(several)} outputs",
            )
        return _as_rows(several, len(rows))


def _as_rows(tensors: list[Any], count: int) -> list[Any]:
    """Outputs with one row per observation; a scale that is the same in every state may come as a single row."""
    first, *rest = tensors
    return [first, *(t.reshape(1, -1).expand(count, -1) if t.numel() == first.shape[-1] else t for t in rest)]


@dataclass(frozen=True, eq=False)
class Agent:
    """A module with ``get_action_and_value(observations, actions)``: log π(a|s) is its second value."""

    module: Any

    def content_parts(self) -> Iterator[bytes]:
        """For fingerprints."""
        return module_parts(self.module)

    def __call__(self, observations: AnyArray, actions: AnyArray) -> FloatArray:
        """log π(a|s) for every row."""
        torch = import_module("torch")

        def ask(rows: AnyArray, taken: AnyArray) -> list[Any]:
            tensor = as_tensor(self.module, rows)
            chosen = torch.as_tensor(taken, device=tensor.device)
            chosen = chosen.to(tensor.dtype) if chosen.is_floating_point() else chosen.long()
            return [self.module.get_action_and_value(tensor, chosen)[1]]

        return run_in_pieces(self.module, ask, observations, np.ascontiguousarray(actions))[0]


def load_torch(path: Path) -> Any:
    """A scripted or a pickled module; weights alone are no policy."""
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise MissingExtra("torch", "reading a module of PyTorch") from error
    with running(f"loading {path}"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of torch about its own formats
        try:
            return torch.jit.load(str(path), map_location="cpu")
        except RuntimeError:
            found = torch.load(str(path), map_location="cpu", weights_only=False)
    if isinstance(found, Mapping):
        raise DataError(
            "the file holds weights without the module that they belong to",
            where=str(path),
            expected="a scripted module (torch.jit.save) or a whole one (torch.save(module, path))",
            got=f"a dict with {', '.join(map(str, list(found)[:3]))} …",
            hint="build the module, load_state_dict(torch.load(path)), and give the module itself",
        )
    return found


def _made(source: Any, wishes: Wishes) -> Policy:
    return from_torch(source, law=wishes.law or "plain", **wishes.some("outputs", "actions", "unknown_actions"))


KIND = Kind("network", is_torch, _made, NETWORK, load_torch)
