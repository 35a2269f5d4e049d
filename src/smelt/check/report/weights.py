"""Describe the constants of a model: type, bytes and range."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.check.report.shown import shown

BUDGET = 1 << 29
"""The most bytes of weights that are read to find their range; other weights show only
their type.
"""

LITERAL = 8
"""The largest constant, in elements, whose elements are all shown."""


TIMES = "\N{MULTIPLICATION SIGN}"
"""The sign between the dims of a shape."""

SHORT = 24
"""The longest text of elements, in characters, that a node's box shows."""


class WeightFacts:
    """Describes constants; reads at most ``BUDGET`` bytes of them."""

    def __init__(self) -> None:
        self.budget_left = BUDGET

    def of(self, value: ir.Value, tensor: ir.TensorProtocol) -> dict[str, Any]:
        """Return name, dtype, shape and bytes of a constant, and its range or its elements.

        Range and elements are left out for strings, empty tensors, and beyond the budget.
        """
        shape = [int(str(dim)) for dim in tensor.shape]
        facts: dict[str, Any] = {
            "name": shown(value.name),
            "dtype": tensor.dtype.name.lower(),
            "shape": shape,
            "bytes": int(tensor.nbytes),
        }
        if (
            tensor.dtype == ir.DataType.STRING
            or tensor.size == 0
            or tensor.nbytes > self.budget_left
        ):
            return facts
        self.budget_left -= int(tensor.nbytes)
        array = np.asarray(tensor.numpy())
        if array.size <= LITERAL:
            facts["elements"] = shown(f"[{', '.join(map(_element, array.reshape(-1)))}]", 120)
        else:
            facts |= _range(array)
        return facts


def label_of(facts: dict[str, Any]) -> str:
    """Return a constant in a few characters: its elements if that text is short, else its shape."""
    elements = facts.get("elements")
    if elements is not None and len(elements) <= SHORT:
        text: str = elements
        return text if facts["shape"] else text.strip("[]")
    return TIMES.join(map(str, facts["shape"])) or "scalar"


def _element(item: np.generic) -> str:
    """Return one element as text; floats with six significant digits."""
    return f"{float(item):.6g}" if item.dtype.kind in "fV" else str(item)


def _range(array: np.ndarray) -> dict[str, Any]:
    """Return the least and the greatest number as text, and the count of elements that are not
    finite.

    NaN is ignored; complex numbers have no range.
    """
    if array.dtype.kind == "c":
        return {}
    if array.dtype.kind not in "biuf":
        array = array.astype(np.float32)
    if array.dtype.kind != "f":
        return {"low": str(array.min()), "high": str(array.max())}
    with np.errstate(all="ignore"):
        low, high = np.fmin.reduce(array, axis=None), np.fmax.reduce(array, axis=None)
        facts: dict[str, Any] = {"low": f"{low:.4g}", "high": f"{high:.4g}"}
        if not (np.isfinite(low) and np.isfinite(high)):
            facts["not_finite"] = int(array.size - np.isfinite(array).sum())
    return facts
