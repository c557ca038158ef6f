"""Values as JSON knows them: the same record gives the same bytes, and a number that does not exist is null."""

from __future__ import annotations

import math
from typing import Any

DIGITS = 12


def plain(value: Any) -> Any:
    """Numbers to twelve digits, None for those that are not finite; tuples as lists, keys as they are."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    number = float(value)
    return float(f"{number:.{DIGITS}g}") if math.isfinite(number) else None
