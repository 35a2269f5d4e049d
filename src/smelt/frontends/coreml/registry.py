"""The readers of MIL operators by name. A reader adds ONNX nodes that compute one operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import onnx_ir as ir

from smelt.mlpackage.program import Constant

if TYPE_CHECKING:
    from smelt.frontends.coreml.call import Call

Result: TypeAlias = "ir.Value | Constant"
"""A value of the graph, or a constant of the program, for which there is no node yet."""
Reader: TypeAlias = "Callable[[Call], Result | Sequence[Result]]"
"""Adds the nodes of one operation to the graph and returns its results."""

READERS: dict[str, Reader] = {}
"""The reader of each operator."""

NOT_READ: dict[str, str] = {
    "_const_symbolic": "it exists only inside of coremltools, never in files",
    "crop_resize": "ONNX has no operator that samples boxes at such points",
    "non_maximum_suppression": "it returns a padded list of boxes, ONNX their indices",
    "conv_quantized": "coremltools calls it experimental and never writes it",
    **dict.fromkeys(
        ("random_bernoulli", "random_categorical", "random_normal", "random_uniform"),
        "its numbers come from a generator that Core ML does not specify",
    ),
}
"""The operators that are not read, and why."""


def reads(*names: str) -> Callable[[Reader], Reader]:
    """Decorate a reader to register it for the MIL operators ``names``."""

    def register(reader: Reader) -> Reader:
        """Register ``reader`` and return it."""
        for name in names:
            READERS[name] = reader
        return reader

    return register
