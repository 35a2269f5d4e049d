"""What a call gives for an input, as kernels take it."""

from __future__ import annotations

import numpy as np

from smelt.errors import UsageError
from smelt.program.instruction import Slot
from smelt.targets.host.kernels.kernel import Array


def taken(slot: Slot, value: Array | None) -> Array:
    """``value`` with its rows dense in memory, which is copied only if they are not.

    Raises UsageError E671 if nothing is given, or another dtype.
    """
    if value is None:
        raise UsageError("E671", f"input {slot.name!r} is missing and has no default")
    array = np.array(value, order="C", copy=None)
    expected = np.dtype(slot.dtype.numpy())
    if array.dtype != expected:
        raise UsageError(
            "E671",
            f"input {slot.name!r} has dtype {array.dtype}, not {expected}",
            fix=f"pass array.astype({str(expected)!r})",
        )
    return array
