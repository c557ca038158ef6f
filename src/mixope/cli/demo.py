"""``mixope demo``: the whole story on Taxi, where the truth is known.

Which log it shows was settled before anybody looked: the seed is the year of the release. Over other seeds its interval
holds the truth as often as it should (docs/benchmarks.md, "The demonstration").
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import mixope
from mixope.cli import options as o
from mixope.cli.output import console, show, tell, working, write_page

if TYPE_CHECKING:
    from rich.console import Console

    from mixope.answers.estimate import Estimate
    from mixope.backtesting import Backtest
    from mixope.base.folders import ClaimedFolder
    from mixope.differences import Comparison
    from mixope.inspection import Inspection
    from mixope.policies import Policy
    from mixope.session.session import Counted
    from mixope.worlds.datasets import Dataset, Settings

YEAR = 2026
RIVALS = ("emp", "bch-pooled", "known-mixture", "mwl", "wis-step", "logged-mean")
RESULTS = ("evaluate.json", "compare.json", "inspect.json", "backtest.json")
PAGES = ("report.html", "rivals.html")


def command(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the logs and results are written.")
    ] = Path("demo-output"),
    episodes: Annotated[int, typer.Option("--episodes", min=8, help="Episodes in all, shared by four loggers.")] = 200,
    horizon: Annotated[int, typer.Option("--horizon", min=2, help="Steps of an episode.")] = 200,
    seed: o.Seed = YEAR,
    force: Annotated[
        bool, typer.Option("--force", help="Write into a folder that holds other files; they stay as they are.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Show every step after that, with its command.")] = False,
) -> None:
    """Four policies drive a taxi and log it. What would a fifth one earn?

    Ten lines tell the logs, the question, the answer and the exact truth; all steps, with their commands, are
    shown by --full. Takes a few seconds.
    """
    from mixope.base.folders import claim
    from mixope.worlds.datasets import OURS, Settings
    from mixope.worlds.earlier import written_earlier

    settings = Settings("taxi", 4, episodes, horizon, "factors", "parquet", seed)
    names, folder = (*OURS, *RESULTS, *PAGES), Path(os.path.abspath(output))
    with claim(folder, names, force=force, again=True, unrecorded=written_earlier) as place:
        _tell_all(settings, place, output, full=full)


def _tell_all(settings: Settings, place: ClaimedFolder, output: Path, *, full: bool) -> None:
    """The story from the logs to the pages, written into a folder that was claimed; ``output`` is its name."""
    from mixope.worlds.datasets import fill

    began, page = time.perf_counter(), console()
    with working("simulating four taxi drivers …") as notes:
        made = fill(settings, place)
    tell(notes)
    work = Demonstration(made, output, settings.seed)
    found, tested = work.inspect(), work.backtest()
    story = Story(work, found, tested, *work.answer(tested), page)
    with place.writing() as fresh:
        story.save(fresh)
    story.open()
    if full:
        story.details()
    took = f"{time.perf_counter() - began:.1f} s. The logs, policies, results and truth.json are in {output}."
    page.print(f"{took}{'' if full else ' Every step: mixope demo --full'}")


@dataclass(frozen=True)
class Demonstration:
    """The steps of the demonstration: each is a call of the library, on logs that are counted once."""

    made: Dataset
    output: Path
    seed: int

    @cached_property
    def files(self) -> tuple[Path, Path, Path]:
        """Logs, target, loggers, as a user would name them."""
        logs, target, loggers = (self.output / p.name for p in (self.made.logs, self.made.target, self.made.loggers))
        return logs, target, loggers

    @cached_property
    def seen(self) -> Counted:
        """The logs, counted once for all steps."""
        from mixope.session.session import count

        return count(str(self.files[0]))

    @cached_property
    def target(self) -> Policy:
        """The fifth policy."""
        return mixope.read_policy(str(self.files[1]))

    @cached_property
    def loggers(self) -> dict[str, Policy]:
        """The four that drove."""
        return dict(mixope.read_policies(str(self.files[2])))

    def inspect(self) -> Inspection:
        """What is in the logs."""
        with working("inspecting …") as notes:
            found = mixope.inspect(self.seen.logs, self.target)
        tell(notes, besides=found.notes)
        return found

    def backtest(self) -> Backtest:
        """Would these logs have predicted their own loggers?"""
        with working("backtesting …") as notes:
            tested = mixope.backtest(self.seen, loggers=self.loggers, seed=self.seed)
        tell(notes, besides=tested.notes)
        return tested

    def answer(self, tested: Backtest) -> tuple[Estimate, Comparison]:
        """What the target would earn, with the backtest among the checks; and its rivals."""
        options: dict[str, Any] = {"loggers": self.loggers, "seed": self.seed}
        with working("evaluating …") as notes:
            result = tested.judge(mixope.evaluate(self.seen, self.target, **options))
        tell(notes, besides=result.remarks)
        with working("comparing …") as notes:
            others = mixope.compare(self.seen, {result.target: self.target}, RIVALS, **options)
        tell(notes)
        return result, mixope.Comparison((result, *others))


@dataclass(frozen=True)
class Story:
    """What is told: ten lines first; where more is asked for, every step with the command that does the same."""

    work: Demonstration
    found: Inspection
    tested: Backtest
    result: Estimate
    rivals: Comparison
    page: Console

    @property
    def truth(self) -> float:
        """What the target really earns, solved exactly from the model of the town."""
        return float(self.work.made.truth["average"])

    @property
    def asked(self) -> str:
        """The command of the evaluation."""
        logs, target, loggers = self.work.files
        return f"mixope evaluate {logs} --target {target} --loggers {loggers} --backtest"

    @property
    def compared(self) -> str:
        """The command of the comparison."""
        logs, target, loggers = self.work.files
        chosen = " ".join(f"--estimator {name}" for name in (self.result.estimator, *RIVALS))
        return f"mixope compare {logs} --target {target} --loggers {loggers} {chosen}"

    def open(self) -> None:
        """The logs, the question, the answer, the truth beside it, and where the pages are."""
        from rich.table import Table

        from mixope.report.difference_words import advantage_words
        from mixope.report.words import earned_words, interval_words

        answer = {
            "the four earn": earned_words(self.result.against_logs),
            "the target": f"{self.result.value:.4g}, {interval_words(self.result)}, from the logs alone",
            "its gain": advantage_words(self.result.against_logs),
            "the verdict": f"{self.result.verdict}; a backtest of the loggers: {self.tested.agree} of"
            f" {len(self.tested.supported)} agree",
            "the truth": f"{self.truth:.4g}, solved exactly from the model of the town{self._held()}",
        }
        table = Table.grid(padding=(0, 2))
        for name, words in answer.items():
            table.add_row("", name, words)
        self.page.print(
            f"Four policies drove a taxi in a 5 × 5 town and logged {self.work.made.truth['rows']:,} steps in"
            f" {self.result.n_episodes} episodes. A fifth policy, the target, has never driven. What would it earn per"
            " step in the long run?"
        )
        self.page.print(table)
        self.page.print(f"The answer as a page, beside the truth: {self.work.output / PAGES[0]}", soft_wrap=True)
        self.page.print(f"All rivals as a page: {self.work.output / PAGES[1]}", soft_wrap=True)

    def _held(self) -> str:
        """Whether the interval holds the truth, in words."""
        inside = self.result.interval
        if inside is None:
            return ""
        return ": inside the interval" if inside.low <= self.truth <= inside.high else ": outside the interval"

    def details(self) -> None:
        """Every step as its command shows it, the truth last."""
        from mixope.report.answer_sheets import estimates_table
        from mixope.report.layout import bullets, heading
        from mixope.report.terminal import sheet_table

        logs, target, loggers = self.work.files
        self._step(1, "what is in the logs", f"mixope inspect {logs} --target {target}")
        show(self.found, full=True)
        title = "would these logs have predicted what their own loggers earned"
        self._step(2, title, f"mixope backtest {logs} --loggers {loggers}")
        show(self.tested, full=True)
        self._step(3, "what the target would earn", self.asked)
        show(self.result, target=str(target), full=True)
        self._step(4, "the rivals, and the exact truth beside them", self.compared)
        self.page.print(f"the target really earns {self.truth:.6g} per step")
        self.page.print(sheet_table(estimates_table((e, e.value - self.truth) for e in self.rivals)))
        self.page.print(heading("What happened"))
        told = _story(self.work.made, self.result, self.rivals)
        self.page.print(bullets([*told, *_backtested(self.tested, self.rivals)]))

    def save(self, folder: Path) -> None:
        """Everything as JSON, and two pages."""
        for name, record in zip(RESULTS, (self.result, self.rivals, self.found, self.tested), strict=True):
            (folder / name).write_text(record.to_json() + "\n", encoding="utf-8")
        extras: dict[str, Any] = {"truth": self.truth, "coverage": self.found.coverage, "backtest": self.tested}
        write_page(self.result, folder / PAGES[0], command=self.asked, **extras)
        write_page(self.rivals, folder / PAGES[1], command=self.compared, **extras)

    def _step(self, number: int, title: str, said: str) -> None:
        self.page.print(f"\n── {number}. {title} ──", style="bold")
        self.page.print(f"$ {said}\n", style="dim", soft_wrap=True)


def _story(made: Dataset, result: Estimate, rivals: Comparison) -> list[str]:
    """What the numbers say, in words that depend on them."""
    from mixope.checks import Verdict
    from mixope.report.words import earned_words

    truth, error = made.truth["average"], result.value - made.truth["average"]
    best = (made.truth["efficiency_bound_mse"] or 0.0) ** 0.5
    lines = [
        f"The four loggers together earn {earned_words(result.against_logs)} per step in the long run. The target "
        f"really earns {truth:.4f} (solved "
        f"exactly from the model of the town), and was estimated at {result.value:.4f} ({error:+.4f}) without "
        "ever driving.",
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


def _backtested(tested: Backtest, rivals: Comparison) -> list[str]:
    """What the backtest adds, and why it is the harder question."""
    masses = [row.uncovered_mass for row in tested.supported]
    if not masses:
        return [f"Backtest: {tested.summary}."]
    target = rivals.estimates[0].uncovered_mass
    harder = min(masses) > target
    return [
        f"Each logger predicted from the other three: {tested.agree} of {len(masses)} agree with what they earned. "
        f"Without its own rows {min(masses):.1%} to {max(masses):.1%} of a logger's steps are uncovered, against "
        f"{target:.1%} of the target's" + (": the backtest asks the harder question." if harder else ".")
    ]
