"""The methods that the figures compare: what they are called there, how they look, how they are made.

``form`` is that of the equations: the general one (``bch`` is then calibrated), or the paper's quadratic program,
which exists for countable states only. Trajectory weights have no such form and stand beside both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mixope.estimators import REGISTRY
from mixope.experiments.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

Form = Literal["general", "paper"]


@dataclass(frozen=True)
class Look:
    """A label, a colour, a marker, and whether the method is told the behaviour policies (dashed and hollow then)."""

    label: str
    colour: str
    marker: str
    aware: bool = False


LOOKS: dict[str, Look] = {
    "emp": Look("EMP", BLUE, "o"),
    "emp-single": Look("EMP (single)", ORANGE, "s"),
    "kl-emp": Look("KL-EMP", GREEN, "^"),
    "sadl": Look("SADL", GREEN, "^"),
    "bch": Look("BCH", VERMILION, "s", aware=True),
    "bch-pooled": Look("BCH (pooled)", SKY, "o", aware=True),
    "bch-kl-pooled": Look("BCH (KL-pooled)", PURPLE, "^", aware=True),
    "is-step": Look("IS, step-wise", ORANGE, "v", aware=True),
    "wis-step": Look("WIS, step-wise", PURPLE, "D", aware=True),
    "mis": Look("MIS", BLACK, "v", aware=True),
    "mis-step": Look("MIS, step-wise", PURPLE, "D", aware=True),
}
SINGLE: dict[Form, tuple[str, ...]] = {
    "general": ("bch", "emp", "sadl", "is-step", "wis-step"),
    "paper": ("bch", "emp"),
}
SEVERAL: dict[Form, tuple[str, ...]] = {
    "general": ("emp-single", "emp", "kl-emp", "bch", "bch-pooled", "bch-kl-pooled", "mis", "mis-step"),
    "paper": ("emp-single", "emp", "kl-emp", "bch", "bch-pooled", "bch-kl-pooled"),
}


def make(name: str, form: Form) -> Any:
    """An estimator for :func:`mixope.evaluation.answer`; general forms by name, so that vectors can have them too."""
    return REGISTRY[name].make(form="paper") if form == "paper" else name
