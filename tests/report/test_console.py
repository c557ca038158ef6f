"""The terminal shows what the page shows, and a name cannot be taken for markup or a control sequence."""

import subprocess
import sys

from rich.console import Console

from mixope.estimate import LoggerShare
from mixope.report import terminal

from . import records


def printed(record, **extras):
    page = Console(width=140, force_terminal=False, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with page.file:
        page.print(terminal(record, **extras))
    return page.export_text()


def test_the_first_line_is_the_verdict_and_the_number():
    first = printed(records.estimate()).splitlines()[0].replace("\N{NO-BREAK SPACE}", " ")
    assert first == "! caution: -0.1917 reward per step, long-run average; 95 % interval -0.2682 to -0.1152"


def test_everything_of_the_page_is_on_the_terminal():
    text = printed(records.estimate(beside=(records.beside(),)), **records.EXTRAS)
    for words in ("logger-3", "is", "1.68%", "outer band", "truth", "Backtest", "east", "12 rows were dropped", "seed"):
        assert words in text, words
    assert records.EXTRAS["command"] in text


def test_names_are_not_markup():
    text = printed(records.estimate(loggers=(LoggerShare("[red]x[/red]\x1b[31m", 1, 0.0, 1.0, 1.0),)))
    assert "[red]x[/red]\ufffd[31m" in text


def test_a_comparison_names_every_target():
    text = printed(records.comparison())
    assert "Weights of “new”" in text
    assert "Weights of “old”" in text
    assert "left out: known-mixture" in text


def test_the_heavy_parts_are_loaded_on_demand():
    code = "import sys, mixope.report, mixope.estimate; print({'matplotlib', 'jinja2', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "set()"
