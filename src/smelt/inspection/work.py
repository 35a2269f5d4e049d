"""The FLOPs and the bytes moved of each node, as numbers or formulas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from smelt.inspection.formulas import OTHERS, PRODUCTS, VIEWS
from smelt.inspection.polynomial import ONCE, ZERO, Polynomial, total
from smelt.ir import scope
from smelt.ir.constants import tensor_of

PART_READ = ("Gather", "GatherElements", "GatherND", "Slice")
"""Operators that read only the returned part of their first input."""

LOOPS = ("Loop", "Scan")


@dataclass(frozen=True)
class Work:
    """The work of one node over all its runs.

    ``macs`` are its multiply-adds. ``flops`` count each of them twice, and its other operations
    once. ``bytes`` are those read and written, each input and output once. None is unknown.
    """

    node: ir.Node
    macs: Polynomial | None
    flops: Polynomial | None
    bytes: Polynomial | None


def work_of(model: ir.Model) -> list[Work]:
    """Return the work of each node of the main graph and of inner graphs.

    Needs inferred shapes and no functions. A loop body counts once for each trip, which is a symbol
    if unknown; of an If, both branches count, though only one runs.
    """
    return list(_work(model.graph, ONCE))


def _work(graph: ir.Graph, times: Polynomial) -> Iterator[Work]:
    """Yield the work of each node of ``graph``, which runs ``times`` times, and of subgraphs."""
    for node in graph:
        if scope.carries_graphs(node):
            yield Work(node, ZERO, ZERO, ZERO)
            inner = times * _trips(node) if node.op_type in LOOPS else times
            for body in scope.subgraphs(node):
                yield from _work(body, inner)
        else:
            yield _work_of_one(node, times)


def _work_of_one(node: ir.Node, times: Polynomial) -> Work:
    """Return the work of a node without inner graphs, multiplied by ``times``."""
    name = "" if node.domain else node.op_type
    count_macs, count_others = PRODUCTS.get(name), OTHERS.get(name)
    macs = count_macs(node) if count_macs is not None else ZERO
    other_operations = (
        count_others(node) if count_others is not None else None if count_macs is None else ZERO
    )
    flops = (
        macs * 2 + other_operations if macs is not None and other_operations is not None else None
    )
    bytes_moved = _bytes(node)
    if times is ONCE:
        return Work(node, macs, flops, bytes_moved)
    return Work(
        node, *(None if item is None else item * times for item in (macs, flops, bytes_moved))
    )


def _trips(node: ir.Node) -> Polynomial:
    """Return the number of iterations of a Loop or Scan, or a symbol for it."""
    unknown = Polynomial({(f"trips({node.name})",): 1})
    if node.op_type == "Loop":
        tensor = tensor_of(node.inputs[0]) if node.inputs[0] is not None else None
        if tensor is None or tensor.size != 1:
            return unknown
        return Polynomial.number(max(int(tensor.numpy().item()), 0))
    last = node.inputs[-1] if node.inputs else None
    axes = node.attributes.get_ints("scan_input_axes", ())
    if last is None or last.shape is None or not last.shape:
        return unknown
    axis = axes[-1] if axes else 0
    return (
        Polynomial.of([last.shape[axis]]) if -len(last.shape) <= axis < len(last.shape) else unknown
    )


def _bytes(node: ir.Node) -> Polynomial | None:
    """Return the bytes that a node reads and writes; None if a size is unknown."""
    if not node.domain and node.op_type in VIEWS:
        return ZERO
    inputs = list(dict.fromkeys(value for value in node.inputs if value is not None))
    if not node.domain and node.op_type in PART_READ:
        inputs = [*inputs[1:], *node.outputs[:1]]
    sizes = [_size(value) for value in (*inputs, *node.outputs) if value.name]
    known_sizes = [size for size in sizes if size is not None]
    return total(known_sizes) if len(known_sizes) == len(sizes) else None


def _size(value: ir.Value) -> Polynomial | None:
    """Return the bytes of ``value``; sub-byte elements are packed."""
    dtype, shape = value.dtype, value.shape
    if shape is None or dtype is None or dtype == ir.DataType.STRING:
        return None
    bits = dtype.bitwidth
    if bits % 8 == 0:
        return Polynomial.of((*shape.dims, bits // 8))
    count = Polynomial.of(shape.dims)
    return Polynomial({p: -(-n * bits // 8) for p, n in count.terms.items()})
