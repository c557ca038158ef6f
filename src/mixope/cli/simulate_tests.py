"""The part of ``mixope simulate`` that draws product experiments: its options, and what it says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixope.base.errors import UsageError
from mixope.cli import complete
from mixope.cli.output import console, tell, working

if TYPE_CHECKING:
    from mixope.worlds.engagement import Design, Trial

Setting = Annotated[
    str,
    typer.Option(
        "--setting",
        autocompletion=complete.settings,
        help="engagement: how the treatment works; lift, novelty, habit, investment, wear-out, opposite, seasonal,"
        " null, churn or hidden.",
    ),
]
Users = Annotated[int, typer.Option("--users", min=1, help="engagement: users in the test.")]
Days = Annotated[int, typer.Option("--days", min=1, help="engagement: days of the test.")]
Arms = Annotated[str, typer.Option("--arms", help="engagement: the control, then the treatments, of A, B and C.")]
Stagger = Annotated[int, typer.Option("--stagger", min=0, help="engagement: the last day on which users enter.")]
Exposure = Annotated[
    float,
    typer.Option(
        "--exposure", min=0, max=1, help="engagement: the probability that a treated user meets the change on a day."
    ),
]
Switchback = Annotated[
    int | None,
    typer.Option(
        "--switchback", min=1, show_default=False, help="engagement: after how many days users go to the next arm."
    ),
]
Rollout = Annotated[
    str | None,
    typer.Option(
        "--rollout",
        metavar="SHARE,SHARE,…",
        show_default=False,
        help="engagement: the share of users treated on the first day, the second, …; the last holds from there on.",
    ),
]
Hidden = Annotated[
    list[str] | None,
    typer.Option(
        "--hidden",
        metavar="COLUMN",
        show_default=False,
        help="engagement: a state column that is not recorded; repeatable.",
    ),
]
Metric = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        show_default="revenue",
        help="engagement: what is recorded; revenue, visits or complaints; repeatable.",
    ),
]


def design_of(rollout: str | None, arms: str, **choices: Any) -> Design:
    """The design that the options say."""
    from mixope.worlds.engagement import Design

    return Design(arms=_listed(arms), rollout=None if rollout is None else _shares(rollout), **choices)


def trial_of(
    setting: str, design: Design, hidden: list[str] | None, metric: list[str] | None, format: str, seed: int
) -> Trial:
    """The test that the options say."""
    from mixope.worlds.engagement import Trial

    return Trial(setting, design, tuple(hidden or ()), tuple(metric or ("revenue",)), format, seed)


def simulate_test(trial: Trial, output: Path, force: bool) -> None:
    """Write it, and say what it hides."""
    from mixope.worlds.engagement import write_dataset

    with working("simulating engagement …") as notes:
        made = write_dataset(trial, output, force=force)
    tell(notes)
    shown = Path(os.path.relpath(made.test))
    size = f"{made.truth['rows']:,} rows of {trial.design.users:,} users over {trial.design.days} days"
    told = [_effect(arm, metric, found) for arm, by in made.truth["effects"].items() for metric, found in by.items()]
    console().print("\n".join([f"{shown}: {size}. {made.world.story}", "", *told]), soft_wrap=True)


def _effect(arm: str, metric: str, found: dict[str, Any]) -> str:
    naive = "has no difference to show" if found["naive"] is None else f"shows {found['naive']:+.4f} on average"
    return f"  {metric} of {arm}: a test like this {naive}; in the long run it is {found['long_run']:+.4f} per day"


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, _listed(text)))
    except ValueError:
        raise UsageError(f"--rollout is a list of shares, such as 0.1,0.25,0.5; got {text!r}") from None
