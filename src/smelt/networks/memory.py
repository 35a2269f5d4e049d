"""The memory that a call takes, measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"
"""Written to ``CLEAR``, sets the peak of this process to what it uses now (Linux, proc(5))."""


def peak_bytes(call: Callable[[], Any]) -> int | None:
    """Return by how many bytes the resident memory of this process grew at most during ``call``.

    Memory that NumPy or malloc had kept from before does not count. None where the system does not
    tell, as on macOS.
    """
    try:
        CLEAR.write_text(RESET_PEAK, "ascii")
        before = _kibibytes("VmRSS")
    except OSError:
        return None
    call()
    return max(0, _kibibytes("VmHWM") - before) * 1024


def _kibibytes(name: str) -> int:
    """Return a figure of this process in KiB."""
    lines = STATUS.read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
