"""``--quiet`` leaves the result alone; ``--verbose`` tells what was read and how long it took; stdout is the same."""

import re

import pytest

from mixope.base.processes import progress_bar
from mixope.cli.volume import set_volume

from .running import LOG, POLICY, run, write

COMMANDS = {"evaluate": True, "compare": True, "inspect": True, "backtest": False}
SCAN = re.compile(r"^scan: .*log\.csv was read in \d+\.\d\d s$", re.MULTILINE)
TIME = re.compile(r"^time: \d+\.\d\d s for (\d+) scans? and what was computed from them$", re.MULTILINE)


@pytest.fixture(params=COMMANDS)
def command(request, tmp_path):
    """A command on a log that gives rise to a note: a column that could be a propensity is left aside."""
    head, *rows = LOG.splitlines()
    log = write(tmp_path / "log.csv", "\n".join([f"{head},prob", *(f"{row},0.5" for row in rows)]) + "\n")
    target = ("--target", write(tmp_path / "t.csv", POLICY)) if COMMANDS[request.param] else ()
    return (request.param, log, *target, "--json")


def test_usually_notes_are_told_and_scans_are_not(command):
    said = run(*command).stderr
    assert "note: " in said
    assert not SCAN.search(said)


def test_quiet_says_nothing_but_the_result(command):
    quiet = run(*command, "--quiet")
    assert quiet.stderr == ""
    assert quiet.stdout == run(*command).stdout


def test_verbose_tells_every_scan_with_its_time(command):
    loud = run(*command, "-v")
    assert loud.stdout == run(*command).stdout
    assert "note: " in loud.stderr
    assert len(SCAN.findall(loud.stderr)) == int(TIME.findall(loud.stderr)[0]) > 0


@pytest.mark.parametrize(("loud", "shown"), [(True, True), (None, True), (False, False)])
def test_quiet_shows_no_bar_on_a_terminal(loud, shown, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    set_volume(loud)
    try:
        with progress_bar("rows of this scan") as report:
            report(1, 2)
    finally:
        set_volume(None)
    assert ("rows of this scan" in capsys.readouterr().err) is shown


def test_quiet_keeps_errors(tmp_path):
    result = run("evaluate", write(tmp_path / "log.csv", LOG), "--target", tmp_path / "none.csv", "-q")
    assert result.exit_code == 3
    assert result.stderr.startswith("error: ")


def test_quiet_writes_a_report_without_a_word(tmp_path):
    log, target = write(tmp_path / "log.csv", LOG), write(tmp_path / "t.csv", POLICY)
    result = run("evaluate", log, "--target", target, "-q", "--html", tmp_path / "report.html")
    assert result.stderr == ""
    assert (tmp_path / "report.html").exists()


def test_the_volume_of_one_command_is_not_that_of_the_next(command):
    run(*command, "-q")
    assert "note: " in run(*command).stderr
    run(*command, "-v")
    assert not SCAN.search(run(*command).stderr)
