"""Logs: from files and tables to canonical rows.

logs = read("logs/*.parquet")
logs.view(connection)     # the name of a DuckDB view of canonical rows
logs.table()              # the same rows as an Arrow table
logs.fragments()          # the same rows as descriptions that other processes can open
"""

from mixope.logs.categories import CODED, StateColumns, Value, code_of, coded, codes_of, merge_values
from mixope.logs.checks import LARGE, explain_gaps, explain_rows, missing_states
from mixope.logs.earnings import Earnings, earnings
from mixope.logs.fragments import Fragment
from mixope.logs.given import LogSource
from mixope.logs.jumps import NO_JUMPS, Jumps, jumps
from mixope.logs.labels import about_look_alikes, look_alikes
from mixope.logs.logs import Logs
from mixope.logs.past import Past, lone_rows
from mixope.logs.readers import read
from mixope.logs.schema import (
    CANONICAL,
    EPISODE_KEYS,
    MISSING_NUMBER,
    MISSING_WORD,
    UNFOLLOWED,
    UNIT,
    UNLABELLED,
    Role,
    Schema,
)
from mixope.logs.sources import reading
from mixope.logs.succession import Finding, explain_episodes
from mixope.logs.writing import write

__all__ = [
    "CANONICAL",
    "CODED",
    "EPISODE_KEYS",
    "LARGE",
    "MISSING_NUMBER",
    "MISSING_WORD",
    "NO_JUMPS",
    "UNFOLLOWED",
    "UNIT",
    "UNLABELLED",
    "Earnings",
    "Finding",
    "Fragment",
    "Jumps",
    "LogSource",
    "Logs",
    "Past",
    "Role",
    "Schema",
    "StateColumns",
    "Value",
    "about_look_alikes",
    "code_of",
    "coded",
    "codes_of",
    "earnings",
    "explain_episodes",
    "explain_gaps",
    "explain_rows",
    "jumps",
    "lone_rows",
    "look_alikes",
    "merge_values",
    "missing_states",
    "read",
    "reading",
    "write",
]
