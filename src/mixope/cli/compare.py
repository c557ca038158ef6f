"""``mixope compare``: several targets, several estimators, the same logs and the same scans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mixope.base.errors import UsageError
from mixope.cli import inputs, output, signatures
from mixope.cli import options as o
from mixope.cli.output import present, working
from mixope.cli.signatures import HelpPanel, option


@signatures.command
def command(
    context: typer.Context,
    logs: o.Paths,
    target: o.Targets,
    *,
    estimator: o.Estimators = ["auto"],  # noqa: B006 (typer's way to say: any number)
    answering: o.Answering,
    all_pairs: Annotated[bool, option("More than twelve targets: all pairs, not each with the best alone.")] = False,
    risk: Annotated[
        float | None,
        option(
            "Also set the mean return of an episode against that of the worst share of episodes, such as 0.1, under"
            " each target. Whole episodes are weighed, as by mixope returns.",
            metavar="SHARE",
        ),
    ] = None,
    outputs: o.Outputs = None,
    picture: Annotated[
        Path | None,
        option(
            "Draw the values with their intervals, or with --risk risk against return, one point per target: a .png,"
            " .svg or .pdf.",
            metavar="FILE",
            panel=HelpPanel.output,
        ),
    ] = None,
    html: o.Html = None,
    printed: o.Printed,
) -> None:
    """Which of several policies is better, and do the estimators agree?

    One line for each target and estimator. Give --target old=old.csv --target new=new.csv, and any number of
    --estimator. With several targets: which to take, with the place of each and what is lost if the best few are
    taken; and their differences, which the same episodes make far more certain than the values. With --risk 0.1 also
    what the worst tenth of episodes returns under each of them.
    """
    from mixope.comparison import compare
    from mixope.inspection import coverage_of
    from mixope.session.session import look

    everything = "all" in estimator
    if everything and len(estimator) > 1:
        raise UsageError("--estimator all stands alone")
    named = inputs.name_targets(target)
    chosen = inputs.check_answering(answering, outputs, list(named.values()))
    output.check_page(html)
    output.check_picture(picture)
    with working("comparing …") as notes:
        rows = inputs.read_logs(logs, answering.columns, answering.files, answering.columns.unit)
        reader = inputs.PolicyReader(answering.policies, rows, answering.target_table, outputs)
        policies = reader.targets(named)
        seen = look(rows, chosen, checkpoint=answering.checkpoint, **answering.columns.past())
        result = compare(
            seen,
            policies,
            "all" if everything else [inputs.make_estimator(name, answering.form, rows) for name in estimator],
            **answering.question.keywords(),
            loggers=reader.loggers(answering.loggers),
            interval=inputs.choose_interval(answering.intervals, notes.progress),
            device=answering.device.value,
            seed=answering.seed,
            memory=inputs.read_memory(answering.memory),
            all_pairs=all_pairs,
            risk=risk,
        )
        notes.extend(output.taken(seen.engine))
        if html is not None:
            coverage = {name: coverage_of(seen, policy) for name, policy in policies.items()}
            output.write_page(result, html, command=output.command_line(context), coverage=coverage)
        drawn = None
        if picture is not None and result.no_risk_because is None:
            drawn = output.write_picture(result.risk or result, picture)
        elif picture is not None:
            notes.append(f"{picture} was not written: there is no risk against return to draw")
    besides = [alert for estimate in result for alert in estimate.remarks]
    present(result, notes, printed.json, besides, html, drawn, full=printed.full)
