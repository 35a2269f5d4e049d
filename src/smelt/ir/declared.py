"""Sizes that a model declares its outputs with, where nothing else tells them.

Inference forgets them, because they may be wrong, and rules must not rely on them. A target that
plans memory before a run takes them at their word rather than none.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

DECLARED = "smelt.declared"
Dims = tuple["int | ir.SymbolicDim", ...]


def note_declared(graph: ir.Graph) -> None:
    """Note the sizes of the outputs; what was noted before stands where nothing is known now."""
    before: Sequence[Dims | None] = graph.meta.get(DECLARED) or ()
    found: list[Dims | None] = []
    for place, value in enumerate(graph.outputs):
        dims = value.shape.dims if value.shape is not None else None
        old = before[place] if place < len(before) else None
        if dims is None or old is None or len(old) != len(dims):
            found.append(dims if dims is not None else old)
        else:
            pairs = zip(dims, old, strict=True)
            found.append(tuple(new if isinstance(new, int) else was for new, was in pairs))
    graph.meta[DECLARED] = found


def declared(graph: ir.Graph) -> Sequence[Dims | None]:
    """The sizes noted for each output; None for a rank that nobody told."""
    noted: Sequence[Dims | None] = graph.meta.get(DECLARED) or ()
    return noted if len(noted) == len(graph.outputs) else [None] * len(graph.outputs)
