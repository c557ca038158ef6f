"""What a case of the catalogue is: an input to make, a way to ask, and what must come of it."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import mixope
from cli.running import check_refusal, run
from mixope.base.errors import UNSHOWABLE, MixopeError, MixopeWarning

CLEAN_VALUE = 0.900462962962963
"""What the clean policy earns by the clean log."""


@dataclass(frozen=True)
class Refused:
    """An error of ours with these phrases: exit code 3 for data, 2 for usage; on its own, on stderr."""

    words: tuple[str, ...]
    code: int = 3


@dataclass(frozen=True)
class Answered:
    """A result: the value (None: whatever it is), and a phrase that must be said besides."""

    value: float | None = CLEAN_VALUE
    note: str = ""


Expected = Refused | Answered


def _left_in(folder: Path) -> list[str]:
    """All files, but for what Python keeps of a module of the user's."""
    return sorted(str(path) for path in folder.rglob("*") if "__pycache__" not in path.parts)


@dataclass(frozen=True)
class Command:
    """Words of a command line, made in a folder that is the current one."""

    words: Callable[[Path], list[str]]

    def check(self, folder: Path, expected: Expected) -> None:
        words = self.words(folder)
        before = _left_in(folder)
        result = run(*words)
        assert not UNSHOWABLE.search(result.stdout + result.stderr), repr(result.output)
        assert "Traceback" not in result.stderr
        if isinstance(expected, Refused):
            assert result.exit_code == expected.code, result.output
            check_refusal(words, result.stdout, expected.code)
            assert _left_in(folder) == before
            assert re.search(r"^(error:|Usage:)", result.stderr, re.MULTILINE)
            _holds(result.stderr, expected.words)
        else:
            assert result.exit_code == 0, result.output
            assert expected.note in result.stderr + result.stdout
            if expected.value is not None:
                _same(_values(json.loads(result.stdout)), expected.value)


@dataclass(frozen=True)
class Call:
    """A call of the library, made in a folder that is the current one; gives a result with a value, or anything."""

    call: Callable[[Path], Any]

    def check(self, folder: Path, expected: Expected) -> None:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("error")
            warnings.simplefilter("always", MixopeWarning)
            if isinstance(expected, Refused):
                with pytest.raises(MixopeError) as caught:
                    self.call(folder)
                assert caught.value.exit_code == expected.code, str(caught.value)
                assert not UNSHOWABLE.search(str(caught.value))
                _holds(str(caught.value), expected.words)
                return
            found = self.call(folder)
        said = [str(warning.message) for warning in heard] + list(getattr(found, "remarks", ()))
        assert expected.note in "\n".join(said)
        if expected.value is not None:
            _same([found.value], expected.value)


@dataclass(frozen=True)
class Case:
    name: str
    ask: Command | Call
    expected: Expected


def evaluate(*words: str, target: str = "target.csv") -> Callable[..., list[str]]:
    return lambda *logs: ["evaluate", *logs, "--target", target, "--json", *words]


def value_of(logs: Any, policy: Any = "target.csv", estimator: str = "emp", **said: Any) -> Any:
    """The shortest way to a value; ``said`` is said of the logs."""
    return mixope.evaluate(mixope.read(logs, **said), policy, estimator)


def _holds(text: str, words: tuple[str, ...]) -> None:
    flat = re.sub(r"\s+", " ", text)
    for phrase in words:
        assert phrase in flat, text


def _values(record: dict[str, Any]) -> list[float]:
    """The values of an evaluation or of a comparison; those of an inspection are its rows, which must be all."""
    if "estimates" in record:
        return [estimate["value"] for estimate in record["estimates"]]
    return [record["value"]]


def _same(found: list[float], expected: float) -> None:
    assert found == pytest.approx([expected] * len(found), rel=1e-12)
