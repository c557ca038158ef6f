"""Bumps wherever they are inside a feature map: how a state becomes a point, and the bumps on such points.

Points are few numbers per state, made on the processor; bumps are many, and a device that has the points makes them
itself. A map that is not made of bumps has no points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mixope.base.arrays import AnyArray, FloatArray
from mixope.features.bumps import FittedBumps
from mixope.features.columns import FittedColumns
from mixope.features.encoding import FittedEncoded
from mixope.features.protocol import FittedMap


@dataclass(frozen=True)
class Points:
    """z of states, in the coordinates of ``centres``; maps with the same ``parts`` give states the same points."""

    place: Callable[[AnyArray], FloatArray]
    parts: tuple[object, ...]
    centres: FloatArray
    widths: FloatArray


def points_of(features: FittedMap) -> Points | None:
    """Of a map that is bumps, on states as they are or as they are encoded."""
    match features:
        case FittedBumps():
            return _standard(features)
        case FittedColumns(encoding, weight, bumps):
            parts = (encoding, weight) if encoding.size else ()

            def place(observations: AnyArray) -> FloatArray:
                if not encoding.size:
                    return np.zeros((len(observations), 1))
                return encoding.transform(observations) * weight

            return Points(place, parts, bumps.centres, bumps.widths)
        case FittedEncoded(encoding, FittedBumps() as inner):
            found = _standard(inner)

            def encoded(observations: AnyArray) -> FloatArray:
                return found.place(encoding.transform(observations))

            return Points(encoded, (encoding, *found.parts), found.centres, found.widths)
    return None


def _standard(bumps: FittedBumps) -> Points:
    """In standard units, double precision: a device that works in single precision loses nothing to large numbers."""

    return Points(bumps.standard, (bumps.mean, bumps.scale, bumps.low, bumps.high), bumps.centres, bumps.widths)
