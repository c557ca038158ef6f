"""What can be recorded, as a type: environments as Gymnasium has them, whatever library they come from."""

from __future__ import annotations

from typing import Any, Protocol


class Environment(Protocol):
    """One environment, not a vector of them."""

    @property
    def observation_space(self) -> Any:
        """What observations look like."""
        ...

    @property
    def action_space(self) -> Any:
        """What actions look like."""
        ...

    def reset(self, *, seed: int | None = None) -> Any:
        """Begin an episode: an observation and a dict."""
        ...

    def step(self, action: Any, /) -> Any:
        """Observation, reward, terminated, truncated, and a dict."""
        ...
