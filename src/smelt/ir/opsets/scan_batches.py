"""The Scan of opset 8, which has a batch dim, as two nested Scans.

    before   s, r = Scan(, a[B,...], x[B,T,...]) { body }
    after    s, r = Scan(a, x) { (p, q) => Scan(p, q) { body } }

The outer Scan iterates over the batch and passes the states and the sequence of one element to the
inner one; its results are stacked over the batch.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.rewrite import Rewriter


def has_lengths(node: ir.Node) -> bool:
    """True if the Scan has an operand with a length per sequence."""
    return node.inputs[0] is not None


def scan_batches(node: ir.Node, rewriter: Rewriter) -> None:
    """Replace ``node``, a Scan of opset 8 without lengths, by nested Scans of opset 9."""
    build = rewriter.builder(node, [node], "raise_opset")
    body, count = node.attributes["body"].as_graph(), node.attributes["num_scan_inputs"].as_int()
    states, operands = len(node.inputs) - 1 - count, node.inputs[1:]
    kinds: list[tuple[ir.DataType, list[int | None] | None]] = []
    for index, value in enumerate(body.inputs):
        assert value.dtype is not None
        rank = None if value.shape is None else len(value.shape)
        if rank is not None and index >= states:
            rank += 1
        kinds.append((value.dtype, None if rank is None else [None] * rank))
    batch, inputs = build.branch(kinds)
    node.attributes.pop("body")
    directions = node.attributes.get("directions")
    results = batch.ops(
        "Scan",
        *inputs,
        outputs=len(node.outputs),
        body=body,
        num_scan_inputs=count,
        scan_input_directions=None if directions is None else directions.as_ints(),
    )
    batch.graph.outputs.extend(results)
    batched_results = build.ops(
        "Scan",
        *operands,
        outputs=len(node.outputs),
        body=batch.graph,
        num_scan_inputs=len(operands),
    )
    rewriter.replace(node, list(batched_results), trust_shape=True)
