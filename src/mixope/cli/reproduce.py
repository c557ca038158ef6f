"""``mixope reproduce``: the paper's figures and claims, from simulation to picture."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mixope.cli import options as o
from mixope.cli.output import complain, console

if TYPE_CHECKING:
    from mixope.paper.experiment import Size
    from mixope.paper.reproduction import Announce

ALL = "all"


def command(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="EXPERIMENT",
            show_default=False,
            help="figure1 … figure5, coverage, claims, phases, or all. Several may be named.",
        ),
    ],
    full: Annotated[
        bool, typer.Option("--full", help="The published size: minutes to hours. Without it: a look, in a minute.")
    ] = False,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="Where results go, and where an earlier run is taken up."),
    ] = Path("reproduction"),
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, show_default=False, help="Processes; by default all cores.")
    ] = None,
    seed: o.Seed = 0,
) -> None:
    """Run the experiments of the paper and draw them: CSV, JSON, PNG, SVG and an HTML page each.

    Stop it at any time (Ctrl-C): the same command goes on where it stopped.
    """
    from mixope.paper import experiment
    from mixope.paper.reproduction import reproduce

    chosen = list(experiment.REGISTRY) if ALL in names else list(dict.fromkeys(names))
    for name in chosen:
        experiment.get(name)
    size: Size = "full" if full else "quick"
    for name in chosen:
        with _watched(name, size) as announce:
            written = reproduce(name, size=size, output=output, jobs=jobs, seed=seed, announce=announce)
        console().print(f"{name}: {', '.join(str(path) for path in written)}", soft_wrap=True)


@contextmanager
def _watched(name: str, size: str) -> Iterator[Announce]:
    """Say what it will cost, then show on a terminal how far it is; after an interruption, what is kept."""
    from mixope.base.processes import progress_bar

    kept = 0

    def announce(total: int, left: int, seconds: float):  # type: ignore[no-untyped-def]
        nonlocal kept
        kept = total - left
        known = f", {kept:,} of them done before" if kept else ""
        complain("note", f"{name}, {size} size: {total:,} repetitions{known}; {_about(seconds, left)}")

        def tick(_: object) -> None:
            nonlocal kept
            kept += 1
            if report:
                report(kept, total)

        return tick

    try:
        with progress_bar(name) if sys.stderr.isatty() else nullcontext() as report:
            yield announce
    except KeyboardInterrupt:
        complain("note", f"{name}: {kept:,} repetitions are kept; the same command goes on from there")
        raise


def _about(seconds: float, left: int) -> str:
    if not left:
        return "nothing to run"
    if seconds < 90:
        return f"about {max(seconds, 1):.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
