"""``import mixope`` is quick, and its names are what they say in whatever order they are first used."""

import subprocess
import sys
from itertools import permutations

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

HEAVY = ("scipy", "duckdb", "pyarrow", "sklearn", "matplotlib", "typer", "pandas", "jax", "gymnasium", "jinja2", "rich")


def run(code):
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_importing_loads_nothing_heavy():
    loaded = run("import sys, mixope; print(*sorted({name.partition('.')[0] for name in sys.modules}))")
    assert "mixope" in loaded
    assert not set(HEAVY) & set(loaded)


def test_reading_a_policy_type_loads_no_solver():
    loaded = run("import sys, mixope; mixope.TabularPolicy; print(*sorted(sys.modules))")
    assert not {"scipy", "duckdb", "sklearn", "matplotlib", "typer"} & set(loaded)


def test_every_public_name_can_be_had():
    assert (
        run("import mixope\nfor name in mixope.__all__: print(getattr(mixope, name) is not None)").count("False") == 0
    )


def test_a_fresh_import_lists_the_public_names():
    assert run("import mixope; print(dir(mixope) == sorted(mixope.__all__), 'evaluate' in dir(mixope))") == ["True"] * 2


def test_an_unknown_name_is_an_attribute_error():
    assert run("import mixope\ntry: mixope.nonsense\nexcept AttributeError as e: print('nonsense' in str(e))") == [
        "True"
    ]


@pytest.mark.parametrize("first", list(permutations(("evaluate", "compare", "read"))), ids="-".join)
def test_functions_are_functions_in_whatever_order_they_are_first_used(first):
    """No module of the package may take the name of a function once it is imported."""
    uses = "; ".join(f"mixope.{name}" for name in first)
    assert run(f"import mixope; {uses}; print(callable(mixope.evaluate), callable(mixope.compare))") == ["True", "True"]


@pytest.mark.parametrize("source", ["rows", "logs.parquet", "logs.csv"])
def test_a_first_answer_loads_no_optimiser_and_no_pool_of_workers(source, tmp_path):
    n = 40
    rows = {
        "observation": [i % 4 for i in range(n)],
        "action": [i % 2 for i in range(n)],
        "reward": [float(i % 3) for i in range(n)],
        "episode_id": [i // 10 for i in range(n)],
        "step": [i % 10 for i in range(n)],
        "truncated": [i % 10 == 9 for i in range(n)],
    }
    pq.write_table(pa.table(rows), tmp_path / "logs.parquet")
    csv.write_csv(pa.table(rows), tmp_path / "logs.csv")
    logs = rows if source == "rows" else str(tmp_path / source)
    code = (
        "import sys, mixope\n"
        f"mixope.evaluate({logs!r}, mixope.TabularPolicy([[0.5, 0.5]] * 4))\n"
        "print(*sorted(sys.modules))"
    )
    unused = {
        "scipy.optimize",
        "scipy.stats",
        "joblib",
        "sklearn",
        "matplotlib",
        "psutil",
        "asyncio",
        "multiprocessing",
    }
    assert not unused & set(run(code))
