"""``mixope evaluate``: one target, one number, and whether to believe it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mixope.cli import inputs, output, signatures
from mixope.cli import options as o
from mixope.cli.output import complain, print_json, show, tell, working
from mixope.cli.signatures import HelpPanel, option

NOT_SUPPORTED = 4


@signatures.command
def command(
    context: typer.Context,
    logs: o.Paths,
    target: o.Target,
    *,
    estimator: o.Estimator = "auto",
    answering: o.Answering,
    confounding: Annotated[
        float | None,
        option(
            "Also bound the value if hidden reasons changed the odds of the logged actions by up to this factor, such"
            " as 1.5, and say at which factor the answer could flip.",
            metavar="FACTOR",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        option("With --confounding: what the target is held against, instead of what the logs earn.", metavar="VALUE"),
    ] = None,
    outputs: o.Outputs = None,
    html: o.Html = None,
    backtest: Annotated[
        bool,
        option(
            "Also predict each labelled logger from the others' rows, and count that among the checks (two more scans)."
        ),
    ] = False,
    strict: Annotated[
        bool, option("Exit with 4 if the verdict is that these logs do not support an answer.", panel=HelpPanel.output)
    ] = False,
    printed: o.Printed,
) -> None:
    """What would this policy earn per step, judged from logs that other policies wrote?

    Prints a verdict, the value with its interval, and the diagnostics behind the verdict; --html writes them as a page.
    States and actions may be ids, factors or vectors of floats. Exit codes: 0 done, 2 usage,
    3 bad data, 4 not supported by these logs (with --strict).
    """
    from mixope.backtesting import backtest as predict_loggers
    from mixope.backtesting import same_question
    from mixope.checks import Verdict
    from mixope.evaluation import evaluate
    from mixope.inspection import coverage_of
    from mixope.session.session import look

    asked = answering.question
    chosen = inputs.check_answering(answering, outputs, [target])
    output.check_page(html)
    with working("evaluating …") as notes:
        rows = inputs.read_logs(logs, answering.columns, answering.files, answering.columns.unit)
        policies = inputs.PolicyReader(answering.policies, rows, answering.target_table, outputs)
        policy, known = policies.target(target), policies.loggers(answering.loggers)
        seen = look(rows, chosen, checkpoint=answering.checkpoint, **answering.columns.past())
        result = evaluate(
            seen,
            policy,
            inputs.make_estimator(estimator, answering.form, rows),
            **asked.keywords(),
            loggers=known,
            interval=inputs.choose_interval(answering.intervals, notes.progress),
            device=answering.device.value,
            seed=answering.seed,
            memory=inputs.read_memory(answering.memory),
            confounding=confounding,
            threshold=threshold,
        )
        question = same_question(seen, result.estimand)
        options: dict[str, Any] = {"loggers": known, "estimand": question, "level": asked.level, "seed": answering.seed}
        tested = predict_loggers(seen, **options) if backtest else None
        result = tested.judge(result) if tested else result
        notes.extend(output.taken(seen.engine))
        if html is not None:
            coverage = coverage_of(seen, policy)
            said = {"command": output.command_line(context), "coverage": coverage, "backtest": tested, "target": target}
            output.write_page(result, html, **said)
    if printed.json:
        tell(notes)
        print_json({**result.to_dict(), **({"backtest": tested.to_dict()} if tested else {})})
    else:
        tell(notes, besides=result.remarks)
        show(result, target=target, backtest=tested, full=printed.full)
        if tested and printed.full:
            output.console().print("\nbacktest: every logger predicted from the others", style="bold")
            show(tested, full=True)
    if html is not None:
        complain("report", str(html))
    if strict and result.verdict is Verdict.UNSUPPORTED:
        raise typer.Exit(NOT_SUPPORTED)
