"""Where networks are trained: on a GPU that JAX can use, or on the processor.

"auto" takes a GPU where there is one, "cpu" never does, and "gpu" is refused where there is none.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from mixope.errors import Advice, MissingExtra, Setting, UnknownName, UsageError

Device = Literal["auto", "cpu", "gpu"]
DEVICES: tuple[Device, ...] = ("auto", "cpu", "gpu")
_NODES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What a driver shows of a GPU: NVIDIA's, AMD's, and that of a Linux inside Windows."""
_MEMORY = "XLA_PYTHON_CLIENT_PREALLOCATE"


def check_device(device: str) -> None:
    """A name that is none, or a GPU that is not there, is told before anything is read."""
    if device not in DEVICES:
        raise UnknownName("device", device, DEVICES)
    if device == "gpu":
        find_gpu(device)


def find_gpu(device: Device) -> Any | None:
    """The GPU on which to train, as JAX knows it, or None for the processor."""
    if device == "cpu" or (device == "auto" and not _likely()):
        return None
    try:
        seen = _load_jax().devices()
    except RuntimeError as error:  # a driver that does not fit, or a GPU that others have filled
        if device == "auto":
            return None
        raise UsageError(Advice("JAX cannot use the GPU that ", _GPU, f" asks for: {_first_line(error)}")) from error
    found = next((each for each in seen if each.platform != "cpu"), None)
    if found is None and device == "gpu":
        raise UsageError(
            Advice(
                _GPU,
                " asks for a GPU, and JAX sees none here. JAX for NVIDIA's is installed with pip install 'jax[cuda12]'."
                " Without a GPU leave out the device, or say ",
                Setting("device", "cpu"),
            )
        )
    return found


_GPU = Setting("device", "gpu")


def _likely() -> bool:
    """Whether it is worth asking JAX, which takes a second to import: it is loaded, or a driver shows a GPU."""
    if "jax" in sys.modules:
        return True
    return any(map(os.path.exists, _NODES)) and find_spec("jax") is not None


def _load_jax() -> Any:
    """JAX, which is told to take memory as it needs it: by itself it would take most of the GPU from all others."""
    if "jax" not in sys.modules:
        os.environ.setdefault(_MEMORY, "false")
    try:
        return import_module("jax")
    except ImportError as error:
        raise MissingExtra("jax", "training on a GPU") from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
