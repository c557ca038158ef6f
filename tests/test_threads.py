"""Linear algebra is held to one thread: by every thread that computes, in libraries that come late, until all are done.

What is loaded when decides what these tests are about, so each runs in a process of its own, where OMP_NUM_THREADS is
not set and two threads are asked for by nobody.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core has one thread")

PRELUDE = """
import json, sys, threading
from mixope.base.threads import one_thread

def pools(api=None):
    from threadpoolctl import threadpool_info
    return [pool["num_threads"] for pool in threadpool_info() if api in (None, pool["user_api"])]

def openmp():
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
    return _openmp_effective_n_threads()

def tell(**found):
    print(json.dumps(found))
"""
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def in_a_process(script: str, **environment: str) -> dict[str, object]:
    """What a script tells that runs by itself."""
    clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    asked = [sys.executable, "-c", PRELUDE + textwrap.dedent(script)]
    done = subprocess.run(asked, env={**clean, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_library_that_is_loaded_meanwhile_is_held_and_given_back() -> None:
    found = in_a_process(
        """
        with one_thread():
            early = pools()
            assert "sklearn" not in sys.modules
            import sklearn.cluster
            late, own = pools(), openmp()
        tell(early=early, late=late, own=own, after=openmp(), all=pools())
        """
    )
    assert len(found["late"]) > len(found["early"])
    assert {*found["early"], *found["late"], found["own"]} == {1}
    assert min(found["after"], *found["all"]) > 1


def test_every_thread_holds_openmp_for_itself_and_the_last_one_gives_linear_algebra_back() -> None:
    found = in_a_process(
        """
        import sklearn.cluster
        entered, leave, seen = threading.Event(), threading.Event(), {}
        def other():
            with one_thread():
                entered.set(); leave.wait(10)
                seen["other"] = [openmp(), *pools()]
            seen["other after"] = openmp()
        thread = threading.Thread(target=other)
        with one_thread():
            thread.start(); entered.wait(10)
        seen["while the other holds"] = pools("blas")
        leave.set(); thread.join()
        tell(**seen, all=[openmp(), *pools()])
        """
    )
    assert set(found["other"]) == {1}
    assert set(found["while the other holds"]) == {1}
    assert min(found["other after"], *found["all"]) > 1


def test_who_leaves_out_of_order_leaves_the_others_alone() -> None:
    found = in_a_process(
        """
        import sklearn.cluster
        first, second = one_thread(), one_thread()
        first.__enter__(); second.__enter__()
        first.__exit__(None, None, None)
        inside = [openmp(), *pools()]
        second.__exit__(None, None, None)
        tell(inside=inside, after=[openmp(), *pools()])
        """
    )
    assert set(found["inside"]) == {1}
    assert min(found["after"]) > 1


def test_a_module_never_sees_who_waited_for_it() -> None:
    found = in_a_process(
        """
        import importlib.util
        with one_thread():
            import sklearn.cluster, colorsys
            spec = importlib.util.find_spec("wave")
            try:
                import no_such_module
            except ModuleNotFoundError as error:
                missing = error.name
        tell(
            loaders=[type(m.__loader__).__name__ for m in (sklearn, colorsys)],
            specs=[type(m.__spec__.loader).__name__ for m in (sklearn, colorsys)],
            source="class" in spec.loader.get_source("wave"),
            missing=missing,
        )
        """
    )
    assert set(found["loaders"] + found["specs"]) == {"SourceFileLoader"}
    assert found["source"]
    assert found["missing"] == "no_such_module"


FITS = """
import warnings
import numpy as np
import mixope
from mixope.policies import CallablePolicy
warnings.simplefilter("ignore")

def spied():
    # fits of scikit-learn as they begin, and the most threads that any pool had then
    seen = []
    def watch(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_name == "fit" and "sklearn" in code.co_filename:
            seen.append((type(frame.f_locals.get("self")).__name__, max([*pools(), openmp()])))
    sys.setprofile(watch)
    return seen

def logs(kind, n=50, steps=8, seed=3):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(n * steps, 2))
    group = draw.choice(["a", "b", "c"], n * steps)
    action = (draw.random(n * steps) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)
    reward = x[:, 0] * action + 0.1 * draw.normal(size=len(x))
    columns = x if kind == "vectors" else {"x": x[:, 0], "y": x[:, 1], "group": group}
    return mixope.Logs.from_arrays(
        observation=columns, action=action, reward=reward, episode_id=np.repeat(np.arange(n), steps),
        step=np.tile(np.arange(steps), n), truncated=np.tile(np.arange(steps) == steps - 1, n),
        roles=None if kind == "vectors" else {"group": "category"},
    )
"""


def test_fits_of_the_first_evaluation_have_one_thread() -> None:
    found = in_a_process(
        FITS
        + """
seen = spied()
target = CallablePolicy(lambda s: np.full((len(s), 2), 0.5), [0, 1])
mixope.evaluate(logs("vectors"), target)
tell(seen=seen)
"""
    )
    assert {name for name, _ in found["seen"]} >= {"KMeans", "HistGradientBoostingClassifier"}
    assert {count for _, count in found["seen"]} == {1}


def test_a_thread_beside_one_that_has_set_limits_of_its_own_is_held_all_the_same() -> None:
    found = in_a_process(
        """
        import numpy, sklearn.cluster
        from threadpoolctl import threadpool_limits
        seen = {}
        def other():
            with one_thread():
                seen["other"] = [openmp(), *pools()]
        with threadpool_limits(2):
            thread = threading.Thread(target=other)
            thread.start(); thread.join()
            seen["limited"] = pools("blas")
        tell(**seen)
        """
    )
    assert set(found["other"]) == {1}
    assert set(found["limited"]) == {2}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["vectors", "mixed"])
def test_the_same_bytes_first_and_second_with_threads_and_without(kind: str) -> None:
    script = (
        FITS
        + f"""
import hashlib, os
def asked():
    result = mixope.evaluate(logs({kind!r}), CallablePolicy(lambda s: np.full((len(s), 2), 0.5), [0, 1]))
    return hashlib.sha256(result.to_json().encode()).hexdigest()
tell(first=asked(), second=asked(), many=max(pools()), cores=os.cpu_count())
"""
    )
    free, bound = in_a_process(script), in_a_process(script, OMP_NUM_THREADS="1")
    assert (free["many"] > 1) == (free["cores"] > 1)
    assert {free["first"], free["second"]} == {bound["first"], bound["second"]}
    assert free["first"] == free["second"]


def test_what_only_claims_to_be_a_module_is_left_alone(monkeypatch):
    """cffi puts libraries among the modules whose class says that they are one."""
    from types import ModuleType

    from mixope.base.threads import one_thread

    class Library:
        __class__ = ModuleType

    monkeypatch.setitem(sys.modules, "a_library", Library())
    with one_thread():
        pass
