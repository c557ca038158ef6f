"""Scans whose moments are made on a GPU, where there is one and it is worth its start.

Requests for moments on bumps go to the device together (:mod:`mixope.requests.device_moments`); everything else, and
moments of features that have no form for a device, are computed as ever. Without a GPU nothing here changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mixope.base.errors import Advice, Setting
from mixope.features.points import points_of
from mixope.requests.moments import MomentRequest
from mixope.requests.request import Request
from mixope.solvers.devices import Device, find_gpu, unusable

Scan = Callable[[Sequence[Request]], tuple[Any, ...]]
WORTHWHILE = 1_000_000
"""Rows from which "auto" takes a GPU: starting it and compiling take longer than the moments of fewer."""


@dataclass
class DeviceSums:
    """Shares the requests of a scan out between a device and the processor, and says what it did."""

    device: Device = "cpu"
    n_rows: int = 0
    notes: list[str] = field(default_factory=list)

    @cached_property
    def gpu(self) -> Any | None:
        """The GPU that is used, if any."""
        if self.device == "auto" and self.n_rows < WORTHWHILE:
            return None
        return find_gpu(self.device)

    def scan(self, scan: Scan, requests: Sequence[Request]) -> tuple[Any, ...]:
        """The answers to all requests, in one scan."""
        moments = [request for request in requests if isinstance(request, MomentRequest)]
        if not moments or self.gpu is None:
            return scan(requests)
        fits = [bool(request.maps) and all(map(points_of, request.maps)) for request in moments]
        mine, left = ([r for r, fit in zip(moments, fits, strict=True) if fit is wanted] for wanted in (True, False))
        if mine:
            self._note(_made_on(self.gpu))
        if left:
            self._note(_left(left))
        return self._shared(self.gpu, scan, requests, mine) if mine else scan(requests)

    def _shared(
        self, gpu: Any, scan: Scan, requests: Sequence[Request], mine: Sequence[MomentRequest]
    ) -> tuple[Any, ...]:
        from mixope.requests.device_kernel import Precision
        from mixope.requests.device_moments import DeviceFailure, DeviceMoments

        # rounding to eleven bits averages out over many rows
        precision: Precision = "tf32" if self.n_rows >= WORTHWHILE else "float32"
        together, taken = DeviceMoments(mine, gpu, precision=precision), set(map(id, mine))
        try:
            staged, *others = scan([together, *(request for request in requests if id(request) not in taken)])
            found = dict(zip(map(id, mine), together.finish(staged), strict=True))
        except DeviceFailure as error:
            raise unusable(error, gpu, "adding up moments") from error
        rest = iter(others)
        return tuple(found[id(request)] if id(request) in found else next(rest) for request in requests)

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def _made_on(gpu: Any) -> str:
    said = f"sums of features were made on a GPU ({gpu.device_kind}) in single precision; in that of the processor: "
    return Advice(said, Setting("device", "cpu"))


def _left(requests: Sequence[MomentRequest]) -> str:
    names = sorted({type(features).__name__ for request in requests for features in request.maps})
    said = ", ".join(names) or "of this kind"
    return f"sums of features that have no form for a GPU ({said}) were made on the processor"
