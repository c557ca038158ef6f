"""``mixope estimators``: what there is to choose from."""

from __future__ import annotations

import json as text

from mixope.cli import options as o
from mixope.cli.console import console, print_json


def command(json: o.Json = False) -> None:
    """List the estimators: their family, whether they take vectors, what they need, when to use them."""
    from mixope.estimators import REGISTRY
    from mixope.estimators.vector.registry import VECTOR_REGISTRY

    if json:
        entries = [
            {"name": name, "family": e.family, "needs": e.needs, "when": e.when, "vectors": name in VECTOR_REGISTRY}
            for name, e in REGISTRY.items()
        ]
        print_json(text.dumps({"estimators": entries}, indent=2, ensure_ascii=False))
        return
    from mixope.cli.views.registry import registry_view

    console().print(registry_view(REGISTRY, VECTOR_REGISTRY))
