"""``print`` and the command line have one rendering; a name cannot be taken for markup or a control sequence."""

import io
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from mixope.answers.estimate import LoggerShare
from mixope.base.errors import Advice, Setting
from mixope.cli.output import on_command_line
from mixope.differences import Rank
from mixope.report.terminal import WIDTH, view

from . import records


def printed(record, width=WIDTH, full=True, **options):
    page = io.StringIO()
    Console(file=page, width=width, color_system=None).print(view(record, full=full, **options))
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).strip("\n")


@pytest.mark.parametrize(
    "record",
    [
        *(records.estimate(), records.reference(), records.comparison(), records.differences()),
        *(records.differences().selection, records.backtest()),
    ],
    ids=["estimate", "reference", "comparison", "differences", "selection", "backtest"],
)
def test_print_shows_what_the_command_line_shows(record):
    assert record.full() == printed(record, phrase=on_command_line)
    assert _but_the_last(str(record)) == _but_the_last(printed(record, full=False, phrase=on_command_line))


def _but_the_last(text):
    """Without the words for what the reader could set."""
    return text.rpartition("More: ")[0].rstrip()


def test_the_verdict_and_the_number_come_first():
    first, second, third = records.estimate().full().splitlines()[:3]
    assert first.split() == ["verdict", "caution"]
    assert second.split(maxsplit=1)[1] == "-0.1917 reward per step, long-run average"
    assert third.split(maxsplit=1)[1] == "-0.2682 to -0.1152 at 0.95 (clustered score, t)"


def test_everything_an_estimate_rests_on_is_shown():
    text = records.estimate(beside=(records.beside(),), band=(-0.9, 0.4)).full()
    for words in ("outer band", "-0.9 to 0.4", "is: -40", "logger-3", "1.68%", "warn", "12 rows were dropped"):
        assert words in text, words


def test_why_there_is_no_interval_is_shown():
    assert "none (it has no scores)" in records.without_interval().full()


def test_a_comparison_shows_targets_differences_and_what_was_left_out():
    text = records.comparison().full()
    for words in (
        "new",
        "old",
        "differences by dr",
        "against what loggers earn themselves",
        "known-mixture was left out",
    ):
        assert words in text, words


def test_places_and_losses_of_three_targets_have_a_line_for_each():
    assert "P(best)" not in records.differences().full()
    found = records.differences(("a", "b", "c"))
    assert "P(best)" in found.full()
    lines = [line.split() for line in found.selection.full().splitlines()]
    assert [line[:3] for line in lines if line[:1] in (["1"], ["2"], ["3"]) and line[1] in "abc"] == [
        ["1", "a", "-0.19"],
        ["2", "b", "-0.2"],
        ["3", "c", "-0.21"],
    ]
    assert "take a: it is within 0.00897 of the best of the 3 ranked at level 0.95" in found.full()
    assert "take a and b: the best of the 3 ranked is one of them at level 0.95" in found.full()


def test_who_is_not_ranked_is_shown_with_the_reason():
    found = records.differences(("a", "b", "c")).selection
    apart = Rank("d", 9.0, note="not supported by these logs")
    text = " ".join(replace(found, ranks=(*found.ranks, apart)).full().split())
    assert "a is best with probability" in text
    assert "not ranked: d (not supported by these logs)" in text
    assert "– d 9 – – not ranked: not supported by these logs" in text


def test_a_backtest_shows_both_intervals_and_why_a_logger_cannot_be_predicted():
    text = records.backtest().full()
    for words in (
        "0.4000 to 0.5800",
        "0.5000 to 0.6000",
        "yes",
        "no",
        "no prediction",
        "c: the target cannot be followed",
    ):
        assert words in text, words


@pytest.mark.parametrize("width", [60, 80, 200])
def test_lines_keep_to_the_width_of_the_terminal(width):
    for record in (records.estimate(), records.comparison(), records.backtest()):
        assert max(map(len, printed(record, width).splitlines())) <= width


def test_names_are_not_markup():
    text = records.estimate(loggers=(LoggerShare("[red]x[/red]\x1b[31m", 1, 0.0, 1.0, 1.0),)).full()
    assert "[red]x[/red]\ufffd[31m" in text


def test_remedies_in_notes_have_the_words_of_each_surface():
    note = Advice("map it: ", Setting("columns", {"action_prob": "p"}))
    for record in (
        records.estimate(alerts=(note,)),
        records.estimate(diagnostics=(records.Diagnostic("interval", 0.0, 1.0, "warn", note),)),
        records.differences(alerts=(note,)),
        replace(records.comparison(), skipped=(("emp", note),)),
        replace(records.backtest(), notes=(note,)),
    ):
        assert "columns={'action_prob': 'p'}" in record.full()
        shown = printed(record, phrase=on_command_line)
        assert "--column action_prob=p" in shown
        assert "columns={" not in shown


def test_the_heavy_parts_are_loaded_on_demand():
    code = (
        "import sys, mixope.report, mixope.answers.estimate; print({'matplotlib', 'jinja2', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "set()"
