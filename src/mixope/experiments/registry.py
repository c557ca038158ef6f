"""All experiments by name, imported when asked for. To add one: a file with an ``EXPERIMENT``, a line here."""

from __future__ import annotations

from importlib import import_module

from mixope.errors import UnknownName
from mixope.experiments.experiment import Experiment

REGISTRY: dict[str, str] = {
    "figure1": "mixope.experiments.figure1",
    "figure2": "mixope.experiments.figure2",
    "figure3": "mixope.experiments.figure3",
    "figure4": "mixope.experiments.figure4",
    "figure5": "mixope.experiments.figure5",
    "coverage": "mixope.experiments.coverage",
    "claims": "mixope.experiments.claims",
}
"""Name: module that holds its ``EXPERIMENT``; in the order in which ``all`` runs them."""


def get(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in REGISTRY:
        raise UnknownName("experiment", name, [*REGISTRY, "all"])
    found = import_module(REGISTRY[name]).EXPERIMENT
    assert isinstance(found, Experiment)
    return found
