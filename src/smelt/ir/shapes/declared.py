"""Notes of the sizes that a model declares for its outputs, and of ranks inside subgraphs.

Inference drops declared shapes, because they may be wrong, and rules must not rely on them. These
notes keep the declared sizes. A target that plans memory before a run uses a declared size if
inference found none; the run then checks the size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from smelt.ir import scope

DECLARED = "smelt.declared"
Dims = tuple["int | ir.SymbolicDim", ...]


def note_declared(graph: ir.Graph) -> None:
    """Note the current shapes of the outputs; a dim that is no number keeps its earlier note."""
    before: Sequence[Dims | None] = graph.meta.get(DECLARED) or ()
    noted: list[Dims | None] = []
    for index, value in enumerate(graph.outputs):
        dims = value.shape.dims if value.shape is not None else None
        dims_before = before[index] if index < len(before) else None
        if dims is None or dims_before is None or len(dims_before) != len(dims):
            noted.append(dims if dims is not None else dims_before)
        else:
            pairs = zip(dims, dims_before, strict=True)
            noted.append(tuple(dim if isinstance(dim, int) else old_dim for dim, old_dim in pairs))
    graph.meta[DECLARED] = noted


def declared(graph: ir.Graph) -> Sequence[Dims | None]:
    """Return the noted dims of each output; None for an output whose rank was not declared."""
    noted: Sequence[Dims | None] = graph.meta.get(DECLARED) or ()
    return noted if len(noted) == len(graph.outputs) else [None] * len(graph.outputs)


RANK = "smelt.rank"


def note_ranks(model: ir.Model) -> None:
    """Note the declared rank of each input and output of the subgraphs of ``model``.

    ONNX Runtime rejects a Loop or Scan whose body leaves a rank open that it cannot infer.
    """
    for value in _subgraph_ports(model):
        if value.shape is not None:
            value.meta.setdefault(RANK, len(value.shape))


def copy_rank(old: ir.Value, new: ir.Value) -> None:
    """Copy the noted rank of ``old`` to ``new``, which replaces it."""
    if RANK in old.meta:
        new.meta.setdefault(RANK, old.meta[RANK])


def restore_ranks(model: ir.Model) -> None:
    """Give inputs and outputs of subgraphs of ``model`` their noted rank where the shape is
    unknown."""
    for value in _subgraph_ports(model):
        if value.shape is None and RANK in value.meta:
            value.shape = ir.Shape([None] * value.meta[RANK])


def _subgraph_ports(model: ir.Model) -> Iterator[ir.Value]:
    """Yield the inputs and outputs of all graphs of ``model`` except the main graph."""
    for graph in scope.graphs(model):
        if graph is not model.graph:
            yield from (*graph.inputs, *graph.outputs)
