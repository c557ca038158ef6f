"""The spaces of Gymnasium, as Minari writes them in JSON or as objects: which columns an observation or action has.

Box                         numbers, one column per element
Discrete                    one id
MultiDiscrete, MultiBinary  classes, one column per element
Text                        one string
Dict, Tuple                 the columns of their parts, with the key or the position before them
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np

from mixope.base.errors import DataError

Key = str | int
"""The way into a Dict (a name) or a Tuple (a position)."""
PICTURE = 32
"""Boxes of bytes with two sides of so many elements are pictures: Minari stores them as JPEG."""
MOST = 100_000
"""Elements of a part of a space."""
CONVERT = (
    "turn every observation into a few numbers and every action into one id or a few numbers, and pass them with"
    " mixope.Logs.from_arrays(observation=…, next_observation=…, …)"
)


@dataclass(frozen=True)
class Leaf:
    """A part of a space that has no parts: where it is, what it holds, and how many elements (None: a single value)."""

    keys: tuple[Key, ...]
    holds: Literal["numbers", "classes", "text"]
    width: int | None = None

    @property
    def suffix(self) -> str:
        """The name after that of the observation or action."""
        return "".join(f".{key}" for key in self.keys)

    def shaped(self, values: Any, rows: int) -> Any:
        """Values as (rows,) or (rows, width), numbers as floats; ValueError where there are more or fewer."""
        array = np.asarray(values)
        array = array.reshape(rows) if self.width is None else array.reshape(rows, self.width)
        if self.holds == "numbers":
            return array if array.dtype.kind == "f" else array.astype(np.float64)
        if self.holds == "classes" and array.dtype.kind not in "iub":
            raise ValueError(f"{array.dtype}, where classes are whole numbers")
        return array.astype(np.int64) if self.holds == "classes" else array


def leaves_of(text: Any, where: str, what: str) -> tuple[Leaf, ...]:
    """The leaves of a space, in order; ``what`` it is, for messages."""
    try:
        space = json.loads(text) if isinstance(text, str) else text
        leaves = tuple(_leaves(space, (), where, what))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DataError(f"The space of the {what} cannot be understood", where=where, got=repr(text)[:200]) from error
    names = [leaf.suffix.lower() for leaf in leaves]
    if not leaves or len(set(names)) < len(names) or any(key == "" for leaf in leaves for key in leaf.keys):
        raise DataError(f"The parts of the {what} have no names of their own", where=where, hint=CONVERT)
    return leaves


def described(space: Any, where: str) -> dict[str, Any]:
    """A space of Gymnasium, known by the name of its class, as Minari writes it."""
    names = [each.__name__ for each in type(space).__mro__]
    kind = next((name for name in names if name in DESCRIBED), names[0])
    try:
        return {"type": kind, **DESCRIBED.get(kind, _nothing)(space, where)}
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(f"A space cannot be understood: {error}", where=where, got=repr(space)[:200]) from error


def _nothing(space: Any, where: str) -> dict[str, Any]:
    return {}


DESCRIBED: dict[str, Callable[[Any, str], dict[str, Any]]] = {
    "Box": lambda space, where: {"shape": [int(side) for side in space.shape], "dtype": str(np.dtype(space.dtype))},
    "Discrete": _nothing,
    "MultiDiscrete": lambda space, where: {"nvec": np.asarray(space.nvec).tolist()},
    "MultiBinary": lambda space, where: {"n": [int(side) for side in space.shape]},
    "Text": _nothing,
    "Dict": lambda space, where: {"subspaces": {k: described(v, where) for k, v in space.spaces.items()}},
    "Tuple": lambda space, where: {"subspaces": [described(part, where) for part in space.spaces]},
}
"""Class → what its record says besides the type."""


def _leaves(space: Mapping[str, Any], keys: tuple[Key, ...], where: str, what: str) -> Iterator[Leaf]:
    match space["type"]:
        case "Dict":
            for name, inner in space["subspaces"].items():
                yield from _leaves(inner, (*keys, str(name)), where, what)
        case "Tuple":
            for position, inner in enumerate(space["subspaces"]):
                yield from _leaves(inner, (*keys, position), where, what)
        case "Box":
            if _is_picture(space):
                raise _refused("pictures", where, what)
            yield Leaf(keys, "numbers", _width(space["shape"]))
        case "Discrete":
            yield Leaf(keys, "classes")
        case "MultiDiscrete":
            yield Leaf(keys, "classes", _width(np.shape(space["nvec"])))
        case "MultiBinary":
            yield Leaf(keys, "classes", _width(space["n"]))
        case "Text":
            yield Leaf(keys, "text")
        case other:
            raise _refused(f"the space {other!r}", where, what)


def _width(sides: Any) -> int:
    """The number of elements of an array with these sides; ValueError where there is no such array."""
    width = prod(sides) if isinstance(sides, list | tuple) else sides
    if not isinstance(width, int) or not 1 <= width <= MOST:
        raise ValueError(f"{width!r} elements")
    return width


def _is_picture(space: Mapping[str, Any]) -> bool:
    sides = space["shape"]
    return space["dtype"] == "uint8" and len(sides) in (2, 3) and min(sides[:2]) >= PICTURE


def _refused(got: str, where: str, what: str) -> DataError:
    return DataError(
        f"The {what} of the data set has a form that is not read",
        where=where,
        expected="Box, Discrete, MultiDiscrete, MultiBinary or Text, or a Dict or Tuple of them",
        got=got,
        hint=CONVERT,
    )
