"""A folder with a ``random.py`` of somebody else's: no process that we start imports from it.

Every hostile module says which process ran it, and then is what it pretends to be, so that nothing fails for its sake.
The process that the user started may find them, where its interpreter looks there by itself (``python -c``, a console).
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from engine_list import WORKERS
from engines.workers import parameter

HOSTILE = """
import os as _os, sys as _sys, _imp
with open(_os.path.join({folder!r}, "ran-" + __name__ + "-" + str(_os.getpid())), "w") as _file:
    _file.write(" ".join(_sys.orig_argv)[:300])
_here = _os.path.dirname(_os.path.abspath(__file__))
_path, _known = list(_sys.path), _sys.modules.pop(__name__)
_sys.path[:] = [p for p in _sys.path if _os.path.abspath(p or ".") != _here]
_sys.path_importer_cache.clear()
try:
    import importlib as _importlib
    _true = _importlib.import_module(__name__)
finally:
    _sys.path[:] = _path
_sys.modules[__name__] = _true
globals().update(_true.__dict__)
"""
NAMES = (
    *(
        "copyreg",
        "random",
        "signal",
        "tempfile",
        "queue",
        "threading",
        "pickle",
        "json",
        "selectors",
        "socket",
        "struct",
    ),
    *("shutil", "asyncio", "numpy", "joblib", "cloudpickle", "distributed", "tornado", "pyspark", "py4j", "ray"),
)
"""Modules that processes import early, of Python, of ours and of the clusters."""
POLICY = """
import numpy as np
from helper import HALF
def target(observations):
    import random
    return np.full((len(observations), 2), HALF)
"""
ENGINES = [parameter(name) for name in WORKERS]


@pytest.fixture
def folder(tmp_path):
    """Logs, a policy in code beside them, and modules of somebody else's."""
    place = tmp_path / "folder"
    place.mkdir()
    (tmp_path / "ran").mkdir()
    (tmp_path / "temporary").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mixope").write_text("from mixope.cli import main\nmain()\n")
    draw = np.random.default_rng(0)
    n = 400
    from pyarrow import parquet, table

    rows = table(
        {
            "episode_id": np.repeat(np.arange(n // 10), 10),
            "step": np.tile(np.arange(10), n // 10),
            "observation": draw.normal(size=n),
            "action": draw.integers(0, 2, n),
            "reward": draw.normal(size=n),
            "action_prob": np.full(n, 0.5),
            "terminated": np.tile([False] * 9 + [True], n // 10),
        }
    )
    parquet.write_table(rows, place / "log.parquet", row_group_size=100)
    (place / "policies.py").write_text(POLICY)
    (place / "helper.py").write_text("HALF = 0.5\n")
    for name in NAMES:
        (place / f"{name}.py").write_text(HOSTILE.format(folder=str(tmp_path / "ran")))
    return place


def processes_that_ran(folder):
    """Process → hostile modules that it ran, and its command."""
    found = {}
    for path in sorted((folder.parent / "ran").iterdir()):
        name, _, process = path.name.removeprefix("ran-").rpartition("-")
        found.setdefault(int(process), []).append((name, path.read_text()))
    return found


SCRIPT = "import sys; from mixope.cli import main; sys.argv[0] = 'mixope'; main()"
AHEAD_OF_US = {"copyreg"}
"""What Python imports for ``-m`` before our first line."""
QUESTION = ("evaluate", "log.parquet", "--target", "policies:target", "--json")


def started_as(how, folder):
    """The command line of mixope as users begin it."""
    if how == "script":
        return [sys.executable, str(folder.parent / "bin" / "mixope")]
    return [sys.executable, "-m", "mixope"] if how == "-m" else [sys.executable, "-c", SCRIPT]


def strays(folder, how, mine):
    """What ran and should not have."""
    found = processes_that_ran(folder)
    allowed = {"script": set(), "-m": AHEAD_OF_US, "-c": set(NAMES)}[how]
    if {name for name, _ in found.get(mine, [])} <= allowed:
        found.pop(mine, None)
    return found


def run(how, words, folder, **environment):
    surroundings = {**os.environ, "TMPDIR": str(folder.parent / "temporary"), "OMP_NUM_THREADS": "1", **environment}
    surroundings.pop("PYTHONPATH", None)
    surroundings |= {name: value for name, value in environment.items() if value is not None}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*started_as(how, folder), *words], cwd=folder, env=surroundings, **pipes) as child:
        said, noise = child.communicate(timeout=300)
    assert child.returncode == 0, noise
    return child.pid, json.loads(said)


@pytest.mark.parametrize("how", ["script", "-m", "-c"])
def test_refits_in_processes_import_nothing_from_the_folder(how, folder):
    words = (*QUESTION, "--interval", "percentile", "--replicates", "20", "--jobs", "2")
    mine, found = run(how, words, folder)
    assert not strays(folder, how, mine)
    assert found["interval"]["replicates"] == 20


@pytest.mark.parametrize("how", ["script", "-m", "-c"])
@pytest.mark.parametrize("engine", ENGINES)
def test_engines_import_nothing_from_the_folder(engine, how, folder):
    mine, found = run(how, (*QUESTION, "--engine", engine, "--threads", "2"), folder)
    assert not strays(folder, how, mine)
    assert found["value"] is not None


def test_an_empty_entry_of_the_path_is_not_the_folder(folder):
    """``PYTHONPATH=$PYTHONPATH:/more`` has one where nothing was set before; this process takes it for the folder."""
    more = folder.parent / "more"
    more.mkdir()
    mine, _ = run("script", (*QUESTION, "--engine", "processes", "--threads", "2"), folder, PYTHONPATH=f":{more}")
    assert not strays(folder, "-c", mine)
