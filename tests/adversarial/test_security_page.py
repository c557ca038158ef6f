"""SECURITY.md promises what a test shows: every line of its table names tests, and all of them are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("| who |")[2].partition("\n\n")[0]
LINES = TABLE.splitlines()[2:]


def test_every_line_names_its_tests():
    for line in LINES:
        assert re.search(r"`[^`]*test_\w+\.py", line.split("|")[-2]), line


def test_every_test_that_is_named_is_there():
    named = re.findall(r"`(\S*?test_\w+\.py)(?:::(\w+))?`", TABLE)
    assert len(named) > 25
    for path, name in named:
        file = ROOT / path if "/" in path else ROOT / "tests" / "adversarial" / path
        assert file.exists(), path
        assert not name or f"def {name}(" in file.read_text(encoding="utf-8"), name
