"""The shape of the code, as a reader meets it: how much of it one evaluation enters, and how large its rooms are.

    python -m benchmarks.house

*Entered* is what one call of ``mixope.evaluate("logs.parquet", policy)`` on 40,000 rows executes: the files and the
functions of the package that are called at least once, in any thread, once all modules are imported; comprehensions are
not counted. *Switches* are ``isinstance`` on a class that stands for one of the two kinds of data (counted or not), and
calls of ``either``, which hands one of two functions the data it is for; *looks for counts* are tests of whether there
are any (``session.counted is None``, ``evidence.on_features``);
*shared names* are names that several classes of the package have. Lines are counted room by room, with blank lines and
docstrings, and once more without (*code*).
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.tables import markdown

import mixope
from mixope import worlds
from mixope.policies import LinearGaussianPolicy
from mixope.worlds import continuous, linear_quadratic

PACKAGE = Path(mixope.__file__).parent
KINDS = {"Counted", "Sampled", "SampledRows", "Problem", "FeatureProblem"}
"""Classes that stand for logs whose states are counted, or for others."""
WINGS = {"worlds", "paper", "experiments", "formats", "adapters", "gpu", "recording"}
"""Rooms that the others do not import."""
ROWS = 40_000


def entered(work: Callable[[], Any]) -> tuple[int, int]:
    """The files and the functions of the package that some work enters."""
    codes: set[CodeType] = set()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    here = f"{PACKAGE}/"
    ours = {code for code in codes if code.co_filename.startswith(here) and not code.co_name.startswith("<")}
    return len({code.co_filename for code in ours}), len(ours)


def evaluations(folder: Path, seed: int) -> dict[str, Callable[[], Any]]:
    """By kind of state, one evaluation of a file."""

    def written(name: str, columns: dict[str, Any]) -> str:
        columns = {key: list(value) if np.ndim(value) > 1 else value for key, value in columns.items()}
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
        return str(folder / f"{name}.parquet")

    works: dict[str, Callable[[], Any]] = {}
    for kind, world in (("id", "gridworld-slip"), ("factors", "taxi")):
        model = worlds.make(world)
        loggers, law = worlds.stages(model, 4, seed=seed), worlds.target(model, seed=seed)
        columns = worlds.simulate(model, loggers, ROWS // 200, 200, seed=seed, observed=kind)
        state, action = (index.ravel() for index in np.indices(law.shape))
        names = {f"observation.{name}": values[state] for name, values in model.factors.items()}
        table = {**(names if kind == "factors" else {"observation": state}), "action": action, "prob": law.ravel()}
        path = written(kind, columns)
        works[f"{kind}s".replace("ss", "s")] = partial(mixope.evaluate, path, mixope.read_policy(table))
    columns = continuous.simulate(
        linear_quadratic.linear_quadratic(), linear_quadratic.loggers(4), ROWS // 200, 50, seed=seed
    )
    path, gaussian = written("vectors", columns), LinearGaussianPolicy([-0.5, -0.6], 0.1, 0.6)
    works["vectors"] = partial(mixope.evaluate, path, gaussian)
    return works


def trees() -> dict[Path, ast.Module]:
    """Every file of the package, parsed."""
    return {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def switches(files: dict[Path, ast.Module]) -> int:
    """Tests of which kind of data something is."""

    def is_one(node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute):
            return node.func.attr == "either"
        if not (isinstance(node.func, ast.Name) and node.func.id == "isinstance"):
            return False
        return any(isinstance(each, ast.Name) and each.id in KINDS for each in ast.walk(node.args[1]))

    return sum(is_one(node) for tree in files.values() for node in ast.walk(tree))


def looks_for_counts(files: dict[Path, ast.Module]) -> int:
    """Tests of whether states are counted, by whether there are counts."""

    def is_one(node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute):
            return node.attr == "on_features" and isinstance(node.value, ast.Name) and node.value.id == "evidence"
        if not (isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot)):
            return False
        return isinstance(node.left, ast.Attribute) and node.left.attr == "counted"

    return sum(is_one(node) for tree in files.values() for node in ast.walk(tree))


def shared_names(files: dict[Path, ast.Module]) -> dict[str, int]:
    """Names of classes that several have."""
    names = Counter(
        node.name
        for tree in files.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return {name: n for name, n in names.items() if n > 1}


def code_lines(path: Path) -> int:
    """Lines with code: no blank ones, comments or docstrings."""
    text = path.read_text()
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def rooms() -> dict[str, list[int]]:
    """Files, lines and lines of code by room; what lies at the root is the room ``.``."""
    sizes: dict[str, list[int]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        size = sizes.setdefault(parts[0] if len(parts) > 1 else ".", [0, 0, 0])
        for place, n in enumerate((1, path.read_text().count("\n"), code_lines(path))):
            size[place] += n
    return sizes


def first_call(folder: Path, seed: int) -> float:
    """Processor seconds of the import and of the first evaluation of a file of 1,000 rows, in a process of its own."""
    model = worlds.make("gridworld-slip")
    columns = worlds.simulate(model, worlds.stages(model, 2, seed=seed), 20, 25, seed=seed)
    law = worlds.target(model, seed=seed)
    state, action = (index.ravel() for index in np.indices(law.shape))
    pq.write_table(pa.table(columns), folder / "first.parquet")
    pq.write_table(pa.table({"observation": state, "action": action, "prob": law.ravel()}), folder / "target.parquet")
    script = (
        "import time\n"
        "start = time.process_time()\n"
        "import mixope\n"
        f"mixope.evaluate({str(folder / 'first.parquet')!r}, {str(folder / 'target.parquet')!r})\n"
        "print(time.process_time() - start)\n"
    )

    return least_seconds(folder, script)


def least_seconds(folder: Path, script: str) -> float:
    """What a script prints last, at the least, in processes that find modules compiled, as an installation does."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    command = [sys.executable, "-c", script]

    def seconds() -> float:
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return float(done.stdout.split()[-1])

    return min([seconds() for _ in range(6)][1:])


def main() -> None:
    """Two tables: the budgets, and the rooms."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    files = trees()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, work in evaluations(Path(folder), seed).items():
            work()
            n_files, n_functions = entered(work)
            rows.append([f"`evaluate` on {kind}: files, functions entered", f"{n_files}, {n_functions}"])
        first = first_call(Path(folder), seed)
        clock = "time.process_time()"
        imported = least_seconds(Path(folder), f"import time; start = {clock}; import mixope; print({clock} - start)")
    sizes = rooms()
    core = sum(size[1] for room, size in sizes.items() if room not in WINGS)
    rows += [
        ["switches on the kind of data; looks for counts", f"{switches(files)}; {looks_for_counts(files)}"],
        ["class names that several classes have", str(len(shared_names(files)))],
        ["lines of the core, of everything", f"{core:,}, {sum(size[1] for size in sizes.values()):,}"],
        ["first `evaluate` of 1,000 rows, processor seconds", f"{first:.2f}"],
        ["`import mixope`, processor seconds", f"{imported:.3f}"],
    ]
    print(markdown(["", "now"], rows))
    print()
    ordered = sorted(sizes.items(), key=lambda item: -item[1][1])
    print(markdown(["room", "files", "lines", "code"], [[room, *(f"{n:,}" for n in size)] for room, size in ordered]))


if __name__ == "__main__":
    main()
