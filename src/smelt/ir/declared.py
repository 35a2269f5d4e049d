"""Sizes that a model declares its outputs with, and ranks within, where nothing else tells them.

Inference forgets them, because they may be wrong, and rules must not rely on them. A target that
plans memory before a run takes them at their word rather than none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from smelt.ir import scope

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


RANK = "smelt.rank"


def note_ranks(model: ir.Model) -> None:
    """Note how many dims each input and output of a graph within ``model`` is declared with.

    ONNX Runtime runs no Loop or Scan whose body leaves a rank open that it cannot infer itself.
    """
    for value in _of_bodies(model):
        if value.shape is not None:
            value.meta.setdefault(RANK, len(value.shape))


def hand_on_rank(old: ir.Value, new: ir.Value) -> None:
    """Let ``new``, which is to stand for ``old``, have the rank that was noted for it."""
    if RANK in old.meta:
        new.meta.setdefault(RANK, old.meta[RANK])


def restore_ranks(model: ir.Model) -> None:
    """Give inputs and outputs of graphs within ``model`` the noted ranks where nothing is known."""
    for value in _of_bodies(model):
        if value.shape is None and RANK in value.meta:
            value.shape = ir.Shape([None] * value.meta[RANK])


def _of_bodies(model: ir.Model) -> Iterator[ir.Value]:
    for graph in scope.graphs(model):
        if graph is not model.graph:
            yield from (*graph.inputs, *graph.outputs)
