"""``mixope returns``: how the returns of episodes are spread, and what the worst of them return."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mixope.cli import inputs, signatures
from mixope.cli import options as o
from mixope.cli.output import check_picture, present, taken, working, write_picture
from mixope.cli.signatures import HelpPanel, option


@dataclass(frozen=True)
class ReturnsOptions(o.QuestionOptions):
    """What is asked of the logs: the total of an episode, where nothing else is."""

    estimand: Annotated[o.EstimandName | None, o.ESTIMAND] = o.EstimandName.episode


@signatures.command
def command(
    logs: o.Paths,
    target: o.Targets,
    *,
    alpha: Annotated[
        float, option("The share of the worst episodes whose mean return is shown.", panel=HelpPanel.question)
    ] = 0.1,
    question: ReturnsOptions,
    loggers: o.Loggers,
    columns: o.ColumnOptions,
    files: o.Files,
    policies: o.PolicyFiles,
    workers: o.Workers,
    seed: o.Seed = 0,
    picture: Annotated[
        Path | None,
        option(
            "Draw risk against return, one point per target: a .png, .svg or .pdf.",
            metavar="FILE",
            panel=HelpPanel.output,
        ),
    ] = None,
    printed: o.Printed,
) -> None:
    """How are the returns of a policy's episodes spread, and what do the worst of them return?

    The mean, the mean of the worst share --alpha of episodes (CVaR) and quantiles, each with its interval, for one
    target or several. Whole episodes are weighed, so that they should be short, or the targets close to the loggers.
    """
    from mixope.distributions import returns
    from mixope.session.session import look

    check_picture(picture)
    named = inputs.name_targets(target)
    chosen = inputs.make_engine(workers)
    with working("weighing episodes …") as notes:
        seen = look(inputs.read_logs(logs, columns, files), chosen, seed=seed)
        reader = inputs.PolicyReader(policies, seen.logs)
        targets, known = reader.targets(named), reader.loggers(loggers)
        result = returns(seen, targets, alpha=alpha, **question.keywords(), loggers=known, seed=seed)
        notes.extend(taken(seen.engine))
        if picture is not None:
            write_picture(result, picture)
    present(result, notes, printed.json, (), picture, full=printed.full)
