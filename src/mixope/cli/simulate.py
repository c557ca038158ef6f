"""``mixope simulate``: logs of a benchmark environment, with the exact truth beside them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixope.base.errors import UsageError
from mixope.cli import complete
from mixope.cli import options as o
from mixope.cli import simulate_tests as tests
from mixope.cli.output import console, tell, working

if TYPE_CHECKING:
    from mixope.worlds.datasets import Dataset, Settings

WORLDS = (
    "taxi, gridworld, gridworld-slip, singlepath, machines or garnet; with episodes that end: walk, sessions,"
    " survival, queue, frozenlake or blackjack; with vectors: pendulum, linear-quadratic, or cartpole, whose episodes"
    " end; or engagement, a product experiment."
)
OF_LOGS = ("loggers", "episodes", "horizon", "observed", "pickup_bonus")
OF_TESTS = ("setting", "users", "days", "arms", "stagger", "exposure", "switchback", "rollout", "hidden", "metric")
"""Options that say nothing about logs of policies, or about a product experiment."""


Format = StrEnum("Format", ["parquet", "csv", "arrow"])
Observed = StrEnum("Observed", ["id", "factors"])


def command(
    ctx: typer.Context,
    environment: Annotated[
        str,
        typer.Argument(metavar="ENV", show_default=False, help=WORLDS, autocompletion=complete.environments),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", show_default=False, help="The folder to write; new or empty."),
    ],
    loggers: Annotated[
        int, typer.Option("--loggers", min=1, help="How many policies write the logs (vectors: 1 or 4).")
    ] = 4,
    episodes: Annotated[
        int, typer.Option("--episodes", min=1, help="Episodes in all, shared among the loggers.")
    ] = 200,
    horizon: Annotated[
        int | None,
        typer.Option(
            "--horizon",
            min=1,
            show_default="200, or to the end where there is one",
            help="Steps after which an episode is truncated.",
        ),
    ] = None,
    format: Annotated[Format, typer.Option("--format", help="How the logs are stored.")] = Format.parquet,
    observed: Annotated[
        Observed, typer.Option("--observed", help="States as one id, or as their factors (observation.row, ...).")
    ] = Observed.id,
    seed: o.Seed = 0,
    pickup_bonus: Annotated[
        bool, typer.Option("--pickup-bonus", help="Taxi: a pick-up earns +20 too, as in the paper's text.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a dataset that is in the folder; other files stay.")
    ] = False,
    setting: tests.Setting = "wear-out",
    users: tests.Users = 1000,
    days: tests.Days = 14,
    arms: tests.Arms = "A,B",
    stagger: tests.Stagger = 0,
    exposure: tests.Exposure = 1.0,
    switchback: tests.Switchback = None,
    rollout: tests.Rollout = None,
    hidden: tests.Hidden = None,
    metric: tests.Metric = None,
) -> None:
    """Write simulated logs, the policies behind them, and the exact truth.

    DIR gets logs.parquet (or .csv, .arrow), target.csv, loggers.csv and truth.json; all of them or none. Where states
    are vectors, policies.py has the policies, and the truth of pendulum and cartpole a standard error. Of engagement
    it gets test.parquet, with a row per user and day, and truth.json. The same seed gives the same bytes.
    """
    from mixope.worlds.datasets import Settings

    if environment == "engagement":
        _refuse(ctx, OF_LOGS, "not for engagement, a test of arms; its options are", OF_TESTS)
        lasting = {"users": users, "days": days, "stagger": stagger, "exposure": exposure, "switchback": switchback}
        design = tests.design_of(rollout, arms, **lasting)
        tests.simulate_test(tests.trial_of(setting, design, hidden, metric, format.value, seed), output, force)
    else:
        _refuse(ctx, OF_TESTS, f"for engagement only, not for {environment}; its options are", OF_LOGS)
        chosen = Settings(environment, loggers, episodes, horizon, observed.value, format.value, seed, pickup_bonus)
        _simulate_logs(chosen, output, force)


def _refuse(ctx: typer.Context, names: Sequence[str], why: str, instead: Sequence[str]) -> None:
    """Options that were given and would do nothing."""
    given = [name for name in names if str(ctx.get_parameter_source(name)).endswith("COMMANDLINE")]
    if given:
        raise UsageError(f"{_option(given[0])} is {why} {', '.join(map(_option, instead))}")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _simulate_logs(settings: Settings, output: Path, force: bool) -> None:
    from mixope.worlds.datasets import write_dataset

    with working(f"simulating {settings.environment} …") as notes:
        made = write_dataset(settings, output, force=force)
    tell(notes)
    shown = Path(os.path.relpath(made.folder))
    truth = made.truth
    near = truth.get("average_standard_error")
    error = f" (± {near:.2g}, simulated)" if near else ""
    console().print(
        f"{shown}: {truth['rows']:,} rows of {settings.loggers} loggers; the target earns {truth['average']:.6g}{error}"
        f" per step in the long run{_per_episode(truth)}\n\n{_next(made, shown)}",
        soft_wrap=True,
    )


def _per_episode(truth: dict[str, Any]) -> str:
    """What an episode earns, where it comes to an end."""
    if "episode" not in truth:
        return ""
    near = truth.get("episode_standard_error")
    error = f" (± {near['1']:.2g}, simulated)" if near else ""
    return f", and {truth['episode']['1']:.6g}{error} per episode of {truth['episode_length']:.3g} steps"


def _next(made: Dataset, shown: Path) -> str:
    """What to type next; a module is found from the current folder where the path can be one."""
    parts = shown.parts
    if not made.vectors:
        logs, target = str(shown / made.logs.name), str(shown / made.target.name)
    elif all(part.isidentifier() for part in parts):
        logs, target = str(shown / made.logs.name), f"{'.'.join(parts)}.policies:target"
    else:
        logs, target = made.logs.name, "policies:target"
    first = f"  cd {shlex.quote(str(shown))}\n" if made.vectors and logs == made.logs.name else ""
    return f"{first}  mixope inspect  {logs}\n  mixope evaluate {logs} --target {target}"
