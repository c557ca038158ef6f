"""Models of Stable-Baselines3 as policies, from the distributions that the library itself builds.

    PPO, A2C     Discrete: the categorical law over start … start + n − 1; Box: the Gaussian, recorded after clipping to
                 the box as ``predict`` does (``law="plain"`` where raw draws were recorded); squashed with gSDE
    SAC          the squashed Gaussian, in the units of the action space
    TD3, DDPG    deterministic: a Gaussian of standard deviation ``scale`` around the action, clipped to the box
    DQN          greedy: needs ``epsilon``, 0 for the greedy policy itself

Observations go in as the logs have them. A model that was trained behind VecNormalize expects normalised ones: where
the model still knows its environment they are normalised here; a model from a file does not, and a note says so.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mixope.adapters.models import continuous_model, discrete_model, refuse_given
from mixope.adapters.torch import module_parts, run_in_pieces
from mixope.base.arrays import AnyArray, FloatArray
from mixope.base.errors import DataError, MissingExtra, MixopeWarning, UsageError
from mixope.policies.gaussian import Law
from mixope.policies.kinds import MODEL, Kind
from mixope.policies.laws import UnknownActions
from mixope.policies.marks import has_base, is_sb3
from mixope.policies.own_code import running
from mixope.policies.protocol import Policy

_MODEL = ("stable_baselines3.common.base_class", "BaseAlgorithm")
_POLICY = ("stable_baselines3.common.policies", "BasePolicy")


def sb3_policy(
    model: Any,
    *,
    epsilon: float | None = None,
    scale: Any = None,
    law: Law | None = None,
    unknown_actions: UnknownActions = "error",
) -> Policy:
    """The policy of a model, or of its ``policy``.

    :param epsilon: for models that act greedily (DQN): the probability of a uniform action.
    :param scale: for deterministic models (TD3, DDPG): the standard deviation of the Gaussian around their action.
    :param law: of a Gaussian: whether actions were recorded ``"clipped"`` to the box (the default) or ``"plain"``.
    :param unknown_actions: for discrete policies, as for a table.
    """
    policy = model.policy if has_base(model, *_MODEL) else model
    network = Sb3Network(policy, type(model).__name__, _normaliser(model))
    space = policy.action_space
    match type(space).__name__:
        case "Discrete":
            refuse_given(network, scale=scale, law=law)
            return discrete_model(network, int(space.start) + np.arange(int(space.n)), epsilon, unknown_actions)
        case "Box" if len(space.shape) == 1:
            refuse_given(network, epsilon=epsilon)
            return continuous_model(network, space.low, space.high, scale, law)
    raise UsageError(
        f"{network.where} acts in {space}; mixope takes Discrete and one-dimensional Box spaces. Write a function "
        "of (observations, actions) that gives probabilities"
    )


def _normaliser(model: Any) -> Any:
    """The VecNormalize of a model that knows its environment and normalises observations."""
    ask = getattr(model, "get_vec_normalize_env", None)
    wrapper = None if ask is None else ask()
    return wrapper if wrapper is not None and wrapper.norm_obs else None


_ALONE = threading.Lock()
"""A policy of the library keeps its last distribution on itself: threads that ask at a time would read each other's."""


@dataclass(frozen=True, eq=False)
class Sb3Network:
    """A policy of the library, asked for the parameters of its distributions."""

    policy: Any
    where: str
    normaliser: Any = None

    @property
    def stochastic(self) -> bool:
        """Whether it has a distribution over actions."""
        return hasattr(self.policy, "get_distribution") or hasattr(self._actor, "get_action_dist_params")

    @property
    def squashes(self) -> bool:
        """Whether actions are tanh of a Gaussian."""
        return bool(self.policy.squash_output)

    @property
    def _actor(self) -> Any:
        return getattr(self.policy, "actor", None)

    def content_parts(self) -> Iterator[bytes]:
        """For fingerprints."""
        yield from module_parts(self.policy)
        if self.normaliser is not None:
            yield np.concatenate([self.normaliser.obs_rms.mean, self.normaliser.obs_rms.var], axis=None).tobytes()

    def answers(self, meaning: str, observations: AnyArray) -> list[FloatArray]:
        """Probabilities, or mean and standard deviation before any squashing."""
        with _ALONE:
            return run_in_pieces(self.policy, lambda rows: self._parameters(meaning, rows), self._seen(observations))

    def greedy(self, observations: AnyArray) -> AnyArray:
        """The best action of every row: its number, or the action itself in the units of the action space."""
        with _ALONE:
            (found,) = run_in_pieces(self.policy, self._predicted, self._seen(observations))
        return found

    def _predicted(self, rows: AnyArray) -> list[Any]:
        return [self.policy.predict(rows, deterministic=True)[0]]

    def _seen(self, observations: AnyArray) -> AnyArray:
        space = self.policy.observation_space
        if observations.dtype.names or observations.dtype.kind not in "fiub":
            raise DataError(
                f"{self.where} takes arrays of numbers",
                expected=str(space),
                got=f"observations of type {observations.dtype}",
                hint="give a function of the columns that asks the model",
            )
        rows = observations if self.normaliser is None else self.normaliser.normalize_obs(observations)
        return np.asarray(rows, dtype=space.dtype if rows.dtype.kind == "f" else rows.dtype)

    def _parameters(self, meaning: str, rows: AnyArray) -> list[Any]:
        tensor, _ = self.policy.obs_to_tensor(rows)
        if hasattr(self.policy, "get_distribution"):
            law = self.policy.get_distribution(tensor)
        else:
            mean, log_std, besides = self._actor.get_action_dist_params(tensor)
            law = self._actor.action_dist.proba_distribution(mean, log_std, **besides)
        found = law.distribution
        return [found.probs] if meaning == "probabilities" else [found.mean, found.stddev]


def load_sb3(path: Path) -> Any:
    """The policy in a ``.zip`` that ``model.save`` wrote, whatever its algorithm; unpickles, which runs code."""
    try:
        saving = import_module("stable_baselines3.common.save_util")
    except ImportError as error:
        raise MissingExtra("sb3", "reading a model of Stable-Baselines3") from error
    with running(f"loading {path}"):
        data, parameters, _ = saving.load_from_zip_file(path, device="cpu")
        policy = _rebuilt(data)
        policy.load_state_dict(parameters["policy"])
    policy.set_training_mode(False)
    warnings.warn(
        MixopeWarning(
            f"{path}: a saved model does not say whether it was trained behind VecNormalize; if it was, the logs must "
            "hold normalised observations, or read_policy must be given the model with its environment"
        ),
        stacklevel=2,
    )
    return policy


def _rebuilt(data: dict[str, Any]) -> Any:
    """The policy as the algorithm makes it; on-policy algorithms say apart whether they use gSDE."""
    options = dict(data.get("policy_kwargs") or {})
    kind = data["policy_class"]
    if any(base.__name__ == "ActorCriticPolicy" for base in kind.__mro__):
        options.setdefault("use_sde", data.get("use_sde", False))
    return kind(data["observation_space"], data["action_space"], lambda _: 0.0, **options)


KIND = Kind("model", is_sb3, lambda source, wishes: sb3_policy(source, **wishes.some(*MODEL)), MODEL, load_sb3)
