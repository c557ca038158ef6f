"""Algorithms of d3rlpy as policies.

    DiscreteSAC                 the categorical law over 0 … A−1
    SAC, CQL, CalQL             the squashed Gaussian, in the units of the action scaler (±1 without one)
    AWAC, IQL, CRR              the Gaussian around the squashed mean, clipped to the same box
    DQN, DiscreteCQL, … (Q)     greedy: need ``epsilon``, 0 for the greedy policy itself
    TD3, DDPG, BC, …            deterministic: need ``scale``

What an algorithm draws (``sample_action``) is what is evaluated. Observations go in raw: d3rlpy's own scalers are
applied here as ``predict`` applies them. Decision transformers look at past steps, so that they are no policies here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mixope.adapters.models import continuous_model, discrete_model, refuse_given
from mixope.adapters.torch import BATCH, module_parts, run_in_pieces
from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import DataError, MissingExtra, UsageError
from mixope.policies.gaussian import Law
from mixope.policies.kinds import MODEL, Kind
from mixope.policies.laws import UnknownActions
from mixope.policies.marks import is_d3rlpy
from mixope.policies.own_code import running
from mixope.policies.protocol import Policy

SQUASHED = ("SAC", "CQL", "CalQL")
CLIPPED = ("AWAC", "IQL", "CRR")
CATEGORICAL = ("DiscreteSAC",)


def d3rlpy_policy(
    algorithm: Any,
    *,
    epsilon: float | None = None,
    scale: Any = None,
    law: Law | None = None,
    unknown_actions: UnknownActions = "error",
) -> Policy:
    """The policy of a fitted or built algorithm; the options are those of a Stable-Baselines3 model."""
    # A class of the user's draws as the one that it extends.
    name = next(base.__name__ for base in type(algorithm).__mro__ if base.__module__.startswith("d3rlpy."))
    if not hasattr(algorithm, "sample_action"):
        raise UsageError(f"{name} looks at past steps, so that it is no policy of the state alone")
    if getattr(algorithm, "impl", None) is None:
        raise UsageError(f"{name} has no network yet: fit it, load it, or build it with create_impl or build_with_env")
    model = D3Model(algorithm, name)
    if algorithm.get_action_type().name == "DISCRETE":
        refuse_given(model, scale=scale, law=law)
        return discrete_model(model, np.arange(int(algorithm.action_size)), epsilon, unknown_actions)
    refuse_given(model, epsilon=epsilon)
    low, high = (model.in_units(np.full((1, int(algorithm.action_size)), edge))[0] for edge in (-1.0, 1.0))
    return continuous_model(model, low, high, scale, law)


@dataclass(frozen=True, eq=False)
class D3Model:
    """An algorithm, asked for the parameters of its distributions."""

    algorithm: Any
    where: str

    @property
    def stochastic(self) -> bool:
        """Whether it draws its actions."""
        return self.where in (*SQUASHED, *CLIPPED, *CATEGORICAL)

    @property
    def squashes(self) -> bool:
        """Whether what it draws is tanh of a Gaussian."""
        return self.where in SQUASHED

    def content_parts(self) -> Iterator[bytes]:
        """For fingerprints: all its networks, and its scalers."""
        for name, module in self.algorithm.impl.modules.get_torch_modules().items():
            yield name.encode()
            yield from module_parts(module)
        for scaler in (self.algorithm.config.observation_scaler, self.algorithm.config.action_scaler):
            yield b"" if scaler is None else str(scaler.serialize()).encode()

    def in_units(self, actions: FloatArray) -> FloatArray:
        """Actions within ±1 in the units of the logs."""
        scaler = self.algorithm.config.action_scaler
        return actions if scaler is None else np.asarray(scaler.reverse_transform_numpy(actions), dtype=np.float64)

    def answers(self, meaning: str, observations: AnyArray) -> list[FloatArray]:
        """Probabilities; or mean and standard deviation, before squashing or, of clipped ones, in units."""
        found = run_in_pieces(self.algorithm.impl.policy, self._parameters, _numbers(observations, self.where))
        if meaning == "probabilities" or self.squashes:
            return found
        mean, std = found
        half = (self.in_units(np.ones_like(mean)) - self.in_units(-np.ones_like(mean))) / 2
        return [self.in_units(mean), std * half]

    def greedy(self, observations: AnyArray) -> FloatArray:
        """What ``predict`` gives."""
        rows = _numbers(observations, self.where)
        with running(self.where):
            found = [self.algorithm.predict(rows[i : i + BATCH]) for i in range(0, max(len(rows), 1), BATCH)]
        return np.concatenate(found).astype(np.float64)

    def _parameters(self, rows: AnyArray) -> list[Any]:
        policy, scaler = self.algorithm.impl.policy, self.algorithm.config.observation_scaler
        tensor = import_module("torch").as_tensor(rows, device=self.algorithm.impl.device)
        law = policy(tensor if scaler is None else scaler.transform(tensor))
        if self.where in CATEGORICAL:
            return [law.probs]
        return [law.mu if self.squashes else law.squashed_mu, law.logstd.exp().expand_as(law.mu)]


def _numbers(observations: AnyArray, where: str) -> AnyArray:
    if observations.dtype.names or observations.dtype.kind not in "fiub":
        got = f"observations of type {observations.dtype}"
        raise DataError(f"{where} takes arrays of numbers", expected="vectors (n, d)", got=got)
    rows = observations[:, None] if observations.ndim == 1 else observations
    return np.ascontiguousarray(rows, dtype=np.float32)


def load_d3rlpy(path: Path) -> Any:
    """The algorithm in a ``.d3`` file that ``save`` wrote; unpickles, which runs code."""
    try:
        d3rlpy = import_module("d3rlpy")
    except ImportError as error:
        raise MissingExtra("d3rlpy", "reading an algorithm of d3rlpy") from error
    with running(f"loading {path}"):
        return d3rlpy.load_learnable(str(path), device="cpu:0")


KIND = Kind("model", is_d3rlpy, lambda source, wishes: d3rlpy_policy(source, **wishes.some(*MODEL)), MODEL, load_d3rlpy)
