"""An input: drawn from (seed, number) alone, and held by a record that JSON can write.

Most inputs only reach a reader or a check, which is cheap; a few go the whole way. ``SHARES`` says how many of each.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from .faults import FAULTS
from .folders import draw_set
from .logs import draw_logs
from .mutations import LOGS, POLICIES, draw_content
from .policies import draw_policy
from .questions import FEATURES, draw_question


@dataclass(frozen=True)
class Case:
    """One input: what kind it is, and all that is needed to make it again."""

    kind: str
    recipe: dict[str, Any]


def _arrays(draw: Random) -> dict[str, Any]:
    """Arrays or a table as logs: opened, and perhaps read."""
    return {"logs": draw_logs(draw), "then": draw.choice(("open", "table", "table"))}


def _log_file(draw: Random) -> dict[str, Any]:
    ending, content, _ = draw_content(draw, LOGS)
    then = draw.choices(("open", "table", "count"), (2, 6, 1))[0]
    return {"ending": ending, "content": base64.b64encode(content).decode(), "then": then}


def _policy(draw: Random) -> dict[str, Any]:
    states, actions = draw.choice(("ids", "strings", "factors")), draw.choice(("ints", "strings", "floats", "vector"))
    return draw_policy(draw, states, actions, wrong=0.9)


def _policy_file(draw: Random) -> dict[str, Any]:
    ending, content, name = draw_content(draw, POLICIES)
    several = "several" in name or draw.random() < 0.05
    return {"ending": ending, "content": base64.b64encode(content).decode(), "several": several}


def _features(draw: Random) -> dict[str, Any]:
    """A feature map on what need not be vectors."""
    return {
        "map": draw.choice(tuple(FEATURES)),
        "rows": draw.choice((0, 1, 2, 7)),
        "width": draw.choice((None, 0, 1, 3)),
        "seed": draw.getrandbits(32),
        "faults": [[draw.choice(tuple(FAULTS)), draw.getrandbits(32)] for _ in range(draw.choice((0, 1, 1)))],
    }


def _rows_checked(draw: Random) -> dict[str, Any]:
    """Logs whose rows are counted and looked at one by one."""
    return {"logs": draw_logs(draw), "then": draw.choice(("explain", "count", "count"))}


COUNTED = ("ids", "ids", "strings", "factors", "words")
VECTORS = ("vector", "scalar")


def _whole(draw: Random, states: tuple[str, ...] = COUNTED) -> dict[str, Any]:
    """A question put to a log, and an answer or a refusal."""
    logs = draw_logs(draw, faults=draw.choice((0, 0, 0, 1, 1, 2)), states=states)
    if states == COUNTED:
        logs["actions"] = draw.choice(("ints", "ints", "strings"))
    if draw.random() < 0.7:  # nothing but the log itself is to be in the way
        logs["columns"] = list(dict.fromkeys([*logs["columns"], "episode_id", "step", "terminated"]))
        logs["rows"], logs["options"] = draw.choice((8, 12, 20, 40)), {}
    in_file = draw.choice((".parquet", ".feather", ".csv")) if draw.random() < 0.1 else None
    return {"logs": logs, "file": in_file, "question": draw_question(draw, logs["states"], logs["actions"])}


SHARES: dict[str, tuple[int, Callable[[Random], dict[str, Any]]]] = {
    "arrays": (380, _arrays),
    "log files": (150, _log_file),
    "data sets": (60, draw_set),
    "policies": (180, _policy),
    "policy files": (150, _policy_file),
    "features": (30, _features),
    "rows": (27, _rows_checked),
    "whole": (20, _whole),
    "whole on vectors": (3, lambda draw: _whole(draw, VECTORS)),
}
"""Kind → its share in thousandths, and how it is drawn."""


def draw_case(seed: int, number: int) -> Case:
    """The input of this number."""
    draw = Random((seed << 64) + number)
    kind = draw.choices(tuple(SHARES), [share for share, _ in SHARES.values()])[0]
    return Case(kind, SHARES[kind][1](draw))
