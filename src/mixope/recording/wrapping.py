"""``recorder``: a wrapper around an environment that writes down what a program does with it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mixope.base.errors import MissingExtra
from mixope.recording.given import Environment

if TYPE_CHECKING:
    from mixope.recording.wrapper import Recorder


def recorder(env: Environment, path: str | os.PathLike[str], *, label: str | None = None) -> Recorder:
    """The environment, with a log of all that is done in it: a ``gymnasium.Wrapper``.

    Say the probability of the action before each step, if it is known: ``env.probability(p)``, or of real actions the
    log density: ``env.probability(log=x)``. An environment, or a wrapper inside, may also give it in the info of the
    step, as ``action_prob`` or ``action_logp``. ``close()`` writes the rest; so does the end of the program.

    :param env: an environment of Gymnasium.
    :param path: a new or empty folder for the log, as Parquet files.
    :param label: the name of the logger.
    :returns: the wrapped environment, to be used like the environment itself.

    >>> import gymnasium
    >>> env = mixope.recorder(gymnasium.make("CartPole-v1"), "cartpole", label="random")
    >>> observation, info = env.reset(seed=0)
    >>> for _ in range(10):
    ...     env.probability(0.5)
    ...     observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    ...     if terminated or truncated:
    ...         observation, info = env.reset()
    >>> env.close()
    >>> mixope.read("cartpole").total_rows()
    10
    """
    try:
        from mixope.recording.wrapper import Recorder
    except ImportError as error:
        raise MissingExtra("gym", "recording what is done in an environment of Gymnasium") from error
    return Recorder(env, path, label=label)
