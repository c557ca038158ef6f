"""``mixope demo``: the whole story on Taxi, where the truth is known."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mixope.cli import options as o
from mixope.cli import reports
from mixope.cli.console import console, tell, working
from mixope.cli.dataset import OURS, Dataset, Settings, write_dataset

if TYPE_CHECKING:
    from rich.console import Console

    from mixope.estimate import Comparison, Estimate

RIVALS = ("emp", "bch-pooled", "known-mixture", "mwl", "wis-step", "logged-mean")
RESULTS = ("evaluate.json", "compare.json", "inspect.json")
PAGES = ("report.html", "rivals.html")


def command(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the logs and results are written.")
    ] = Path("demo-output"),
    episodes: Annotated[int, typer.Option("--episodes", min=8, help="Episodes in all, shared by four loggers.")] = 200,
    horizon: Annotated[int, typer.Option("--horizon", min=2, help="Steps of an episode.")] = 200,
    seed: o.Seed = 0,
) -> None:
    """Four policies drive a taxi and log it. What would a fifth one earn?

    It is evaluated from the logs alone, with its rivals, and then shown against the exact truth. Takes a few seconds.
    """
    from mixope.cli.views import parts
    from mixope.cli.views.comparison import comparison_table
    from mixope.cli.views.estimate import estimate_view
    from mixope.cli.views.inspection import inspection_view
    from mixope.comparison import compare
    from mixope.estimate import Comparison
    from mixope.evaluation import evaluate
    from mixope.inspection import inspect
    from mixope.logs import read
    from mixope.policies import read_policies, read_policy

    began, page = time.perf_counter(), console()
    with working("simulating four taxi drivers …") as notes:
        settings = Settings("taxi", 4, episodes, horizon, "factors", "parquet", seed)
        made = write_dataset(settings, output, force=True, ours=(*OURS, *RESULTS, *PAGES))
    tell(notes)
    logs_file, target_file, loggers_file = (output / path.name for path in (made.logs, made.target, made.loggers))
    page.print(
        f"Four policies drove a taxi in a 5 × 5 town, {made.truth['rows']:,} logged steps in {episodes} episodes. "
        "A fifth policy, the target, has never driven. What would it earn per step in the long run? Everything below "
        "comes from the logs alone, until the truth at the end."
    )
    target, loggers = read_policy(str(target_file)), dict(read_policies(str(loggers_file)))

    _announce(page, 1, "what is in the logs", f"mixope inspect {logs_file} --target {target_file}")
    with working("inspecting …") as notes:
        logs = read(str(logs_file))
        found = inspect(logs, target)
    tell(notes, besides=found.notes)
    page.print(inspection_view(found))

    asked = f"mixope evaluate {logs_file} --target {target_file}"
    _announce(page, 2, "what the target would earn", asked)
    with working("evaluating …") as notes:
        result = evaluate(logs, target, seed=seed)
    tell(notes, besides=result.alerts)
    page.print(estimate_view(result, str(target_file)))

    chosen = " ".join(f"--estimator {name}" for name in (result.estimator, *RIVALS))
    said = f"mixope compare {logs_file} --target {target_file} --loggers {loggers_file} {chosen}"
    _announce(page, 3, "the rivals, and the exact truth beside them", said)
    with working("comparing …") as notes:
        others = compare(logs, {result.target: target}, RIVALS, loggers=loggers, seed=seed)
    rivals = Comparison((result, *others))
    tell(notes)
    page.print(f"the target really earns {made.truth['average']:.6g} a step")
    page.print(comparison_table(rivals, made.truth["average"]))

    page.print(parts.heading("What happened"))
    page.print(parts.bullets(_story(made, result, rivals)))
    for name, text in zip(RESULTS, (result.to_json(), rivals.to_json(), found.to_json()), strict=True):
        (made.folder / name).write_text(text + "\n", encoding="utf-8")
    truth, covered = made.truth["average"], found.coverage
    reports.save(result, made.folder / PAGES[0], command=asked, truth=truth, coverage=covered)
    reports.save(rivals, made.folder / PAGES[1], command=said, truth=truth, coverage=covered)
    page.print(f"\nThe evaluation as a page, beside the truth: {output / PAGES[0]}", soft_wrap=True)
    page.print(f"All rivals as a page: {output / PAGES[1]}", soft_wrap=True)
    page.print(f"\n{time.perf_counter() - began:.1f} s. The logs, policies, results and truth.json are in {output}.")


def _announce(page: Console, number: int, title: str, said: str) -> None:
    page.print(f"\n── {number}. {title} ──", style="bold")
    page.print(f"$ {said}\n", style="dim", soft_wrap=True)


def _story(made: Dataset, result: Estimate, rivals: Comparison) -> list[str]:
    """What the numbers say, in words that depend on them."""
    from mixope.diagnostics import Verdict

    truth, error = made.truth["average"], result.value - made.truth["average"]
    best = (made.truth["efficiency_bound_mse"] or 0.0) ** 0.5
    lines = [
        f"The four loggers earned {result.logged_mean:.4f} a step. The target really earns {truth:.4f} (solved exactly "
        f"from the model of the town), and was estimated at {result.value:.4f} ({error:+.4f}) without ever driving.",
    ]
    if result.interval is not None:
        low, high = result.interval.low, result.interval.high
        gap = max(low - truth, truth - high)
        missed = f"misses it by {gap:.4f}: chance, which one interval in twenty has against it, or a bias"
        lines.append(
            f"The interval, {low:.4f} to {high:.4f} at {result.interval.level:.0%}, "
            f"{'holds the truth' if gap <= 0 else missed}."
        )
    lines.append(
        f"The verdict is “{result.verdict}”. On logs of this size a typical error of {best:.4f} is the least that any "
        "method can have which knows the states only as ids (the efficiency bound)."
    )
    plain = rivals[result.target, "emp"]
    lines.append(
        f"{plain.uncovered_mass:.2%} of the target's steps are actions that nobody logged in their state. `emp` can "
        f"say nothing about them and is off by {plain.value - truth:+.4f}; `{result.estimator}`, which `auto` chose, "
        f"also learns from states that share factors and is off by {error:+.4f} here."
    )
    wrong = [e for e in rivals if e.diagnostics and e.interval and not e.interval.low <= truth <= e.interval.high]
    warned = [e.estimator for e in wrong if e.verdict is not Verdict.TRUSTWORTHY]
    if wrong:
        lines.append(
            f"The intervals of {', '.join(e.estimator for e in wrong)} miss the truth; the diagnostics had warned of "
            f"{'all of them' if len(warned) == len(wrong) else ', '.join(warned) or 'none of them'}."
        )
    return lines
