"""Does the check *state* see that the state of vectors leaves something out, and is it quiet where nothing is missing?

    python benchmarks/vector_state.py                 # 20 logs of every kind and size, seeds 0, 1, …
    python benchmarks/vector_state.py --logs 5

Logs of Pendulum, CartPole, a linear–quadratic system, the hospital (its two columns with missing values left out) and
two worlds of :mod:`healthy_worlds` (three numbers; these and a region), as they are and with a column dropped. Printed
is how often the check warns. It depends on the logs alone, so that nothing is estimated here.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np

import mixope
from healthy_worlds import Numbers
from mixope.checks.state import state_of_vectors
from mixope.session import look
from mixope.worlds import cartpole, continuous, hospital, linear_quadratic, pendulum
from tables import markdown

Columns = dict[str, np.ndarray]
UNMEASURED = ("smoker", "pressure")


def without(columns: Columns, dropped: int | str) -> Columns:
    """The same log without a column of the state."""
    if isinstance(dropped, str):
        return {name: values for name, values in columns.items() if not name.endswith(f"observation.{dropped}")}
    cut = {name: np.delete(columns[name], dropped, axis=1) for name in ("observation", "next_observation")}
    return {**columns, **cut}


def patients(n: int, seed: int) -> Columns:
    columns = hospital.simulate(n, seed=seed)
    return {name: values for name, values in columns.items() if not name.endswith(UNMEASURED)}


def kinds(seed: int) -> Iterator[tuple[str, int, Columns, dict[str, int | str]]]:
    """A world, its episodes, its log, and what is dropped of it."""
    for n in (15, 50):
        columns = continuous.simulate(pendulum.Pendulum(), pendulum.loggers(4), n, 200, seed=seed)
        yield "Pendulum", n, columns, {"angular speed": 2}
    for n in (40, 150):
        columns = continuous.simulate(cartpole.CartPole(), cartpole.loggers(4), n, 200, seed=seed)
        yield "CartPole", n, columns, {"speed": 1, "angular speed": 3}
    for n in (30, 100):
        system = linear_quadratic.linear_quadratic()
        columns = continuous.simulate(system, linear_quadratic.loggers(4), n, 50, seed=seed)
        yield "linear–quadratic", n, columns, {"first number": 0, "second number": 1}
    for n in (150, 600):
        yield "hospital", n, patients(n, seed), {"severity": "severity"}
    for n in (40, 200):
        yield "three numbers", n, Numbers(False, None).simulate(n, seed), {"first number": 0}
        yield "numbers and a region", n, Numbers(True, 0.9).simulate(n, seed), {"region": "region"}


def warns(columns: Columns) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = state_of_vectors(look(mixope.read(columns)).sums.pasts)
    return found is not None and found.status != "pass"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the first log")
    given = parser.parse_args()
    found: dict[tuple[str, int, str], int] = {}
    for seed in range(given.seed, given.seed + given.logs):
        for world, n, columns, dropped in kinds(seed):
            for what, which in [("nothing", None), *dropped.items()]:
                key = (world, n, what)
                found[key] = found.get(key, 0) + warns(columns if which is None else without(columns, which))
    lines = [[w, f"{n:,}", what, f"{100 * k / given.logs:.0f}"] for (w, n, what), k in sorted(found.items())]
    print(markdown(["world", "episodes", "dropped", "*state* warns, %"], lines))


if __name__ == "__main__":
    main()
