"""One name means one thing: no two classes of the package share a name, be they private or in functions."""

import ast
from collections import defaultdict
from pathlib import Path

import mixope


def test_no_two_classes_share_a_name():
    package = Path(mixope.__file__).parent
    places = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(package)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
