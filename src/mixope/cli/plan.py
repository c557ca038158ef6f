"""``mixope plan``: how much more data until the answer is sharp enough."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from typer.models import OptionInfo

from mixope.base.errors import UsageError
from mixope.cli import inputs, signatures
from mixope.cli import options as o
from mixope.cli.output import present, taken, working
from mixope.cli.signatures import HelpPanel, option


def _of(help: str, **settings: Any) -> OptionInfo:
    return option(f"Of an experiment: {help}", **settings)


@dataclass(frozen=True)
class Pilot:
    """The table of an experiment: its columns and arms."""

    PANEL: ClassVar[HelpPanel] = HelpPanel.logs
    arm: Annotated[str | None, _of("the arm of a row. The long-run difference is planned for.", metavar="COLUMN")] = (
        None
    )
    control: Annotated[str | None, _of("the arm to compare with.", metavar="ARM")] = None
    treatment: Annotated[str | None, _of("which of several arms.", metavar="ARM")] = None
    unit: Annotated[
        str | None,
        option("Of an experiment: the unit, such as a user; of logs: to whom an episode belongs.", metavar="COLUMN"),
    ] = None
    time: Annotated[str | None, _of("the period of a row.", metavar="COLUMN")] = None
    metric: Annotated[str | None, _of("what a unit earned in a period.", metavar="COLUMN")] = None
    state: Annotated[list[str], _of("what a unit is like before a period. Repeatable.", metavar="COLUMN")] = field(
        default_factory=list
    )

    def keywords(self) -> dict[str, Any]:
        """As the library takes them."""
        for name in ("control", "unit", "time", "metric"):
            if getattr(self, name) is None:
                raise UsageError(f"the table of an experiment also needs --{name}")
        return vars(self)


@signatures.command
def command(
    logs: o.Paths,
    *,
    precision: Annotated[
        float, option("The value or difference is wanted to ± X.", metavar="X", panel=HelpPanel.question)
    ],
    target: Annotated[
        str | None, option("The policy that is asked about.", metavar="POLICY", panel=HelpPanel.policy)
    ] = None,
    against: Annotated[
        str | None,
        option(
            "Another policy, or logs for what the logs earn themselves: the difference is planned for.",
            metavar="POLICY|logs",
            panel=HelpPanel.policy,
        ),
    ] = None,
    estimator: o.Estimator = "auto",
    question: o.QuestionOptions,
    sequential: Annotated[
        bool, option("The interval is to hold however often one looks.", panel=HelpPanel.answer)
    ] = False,
    pilot: Pilot,
    columns: o.ColumnOptions,
    absent: o.Absent = None,
    files: o.Files,
    policies: o.PolicyFiles,
    workers: o.Workers,
    seed: o.Seed = 0,
    printed: o.Printed,
) -> None:
    """How many episodes, users or days until the answer is known to ± X?

    From a pilot: logs with --target (and --against, for a difference), or the table of an experiment with --arm,
    --control, --unit, --time and --metric. The number comes with a range, because the pilot's own spread is uncertain.
    """
    from mixope.planning import plan, plan_experiment
    from mixope.session.session import look

    if (target is None) == (pilot.arm is None):
        raise UsageError("say what is planned for: --target for logs, or --arm for the table of an experiment")
    chosen = inputs.make_engine(workers)
    wanted: dict[str, Any] = {"precision": precision, "sequential": sequential}
    with working("planning …") as notes:
        if target is None:
            result = plan_experiment(
                inputs.open_table(logs),
                **wanted,
                **pilot.keywords(),
                level=question.level,
                missing=None if columns.missing is None else columns.missing.value,
                absent=None if absent is None else absent.value,
                **files.keywords(),
            )
        else:
            seen = look(inputs.read_logs(logs, columns, files, pilot.unit), chosen)
            reader = inputs.PolicyReader(policies, seen.logs)
            policy = reader.target(target)
            rival = against if against in (None, "logs") else reader.target(str(against))
            result = plan(seen, policy, estimator, **wanted, against=rival, **question.keywords(), seed=seed)
            notes.extend(taken(seen.engine))
    present(result, notes, printed.json, result.notes, full=printed.full)
