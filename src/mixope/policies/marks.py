"""How models of other libraries are known: by the names of their classes, without importing anything."""

from __future__ import annotations

from typing import Any


def has_base(source: Any, module: str, name: str) -> bool:
    """Whether an object is of a class with a base of this name."""
    return any(base.__module__ == module and base.__name__ == name for base in type(source).__mro__)


def is_torch(source: Any) -> bool:
    """Whether an object is a module of PyTorch, scripted ones included."""
    return has_base(source, "torch.nn.modules.module", "Module")


def is_sb3(source: Any) -> bool:
    """Whether an object is a model or a policy of Stable-Baselines3."""
    model = has_base(source, "stable_baselines3.common.base_class", "BaseAlgorithm")
    return model or has_base(source, "stable_baselines3.common.policies", "BasePolicy")


def is_d3rlpy(source: Any) -> bool:
    """Whether an object is an algorithm of d3rlpy."""
    return has_base(source, "d3rlpy.base", "LearnableBase")
