"""Lowers AffineGrid, which computes the positions at which GridSample reads an image."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.dynamic_movement import data_dependent_size, is_data_dependent
from smelt.program.lower.registry import lowers
from smelt.program.lower.sampler import NARROW


@lowers("AffineGrid")
def affine_grid(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the positions [N, sizes..., r] to which the affine maps theta [N, r, r + 1] move the
    pixels of an image.

    Pixel coordinates are from -1 to 1, and a 1 is appended for the constant term.
    """
    m = Steps(cx)
    theta = m.array(node.inputs[0])
    if is_data_dependent(cx, node, [1]):
        _emit_dynamic_grid(m, node, theta)
        return
    size = cx.ints(node, "size", 1)
    batch, rank, _ = m.sizes(theta)
    if size is None or len(size) != rank + 2 or size[0] != batch:
        raise cx.refuse("the input size does not fit the shape of theta")
    grid_sizes = size[2:]
    ends = [
        1.0 if node.attributes.get_int("align_corners", 0) else 1 - 1 / max(length, 1)
        for length in grid_sizes
    ]
    lines = [np.linspace(-end, end, length) for end, length in zip(ends, grid_sizes, strict=True)]
    mesh = np.meshgrid(*lines, indexing="ij")[::-1]
    points = np.stack([*mesh, np.ones(grid_sizes)]).reshape(rank + 1, -1)
    computed_type = ir.DataType.FLOAT if theta.dtype in NARROW else theta.dtype
    grid = m.dot("nij,jp->npi", theta.cast(computed_type), m.constant(points, computed_type))
    m.set_output(node.outputs[0], grid.cast(theta.dtype).reshape(batch, *grid_sizes, rank))


def _emit_dynamic_grid(m: Steps, node: ir.Node, theta: Array) -> None:
    """Emit the grid of an AffineGrid whose image sizes are an operand.

    Each axis has a line of pixel coordinates; each result coordinate is the sum of the lines, times
    the factors in its row of theta.
    """
    batch, rank, _ = m.sizes(theta)
    sizes, computed_type = m.array(node.inputs[1]), ir.DataType.DOUBLE
    if sizes.shape != (rank + 2,):
        raise m.cx.refuse("the input size does not fit the shape of theta")
    lines = []
    for axis in range(rank):
        count = sizes.rows(axis + 2, axis + 3, 0).reshape().cast(computed_type)
        after = data_dependent_size(m.cx, node.outputs[0], axis + 1)
        indices = m.numbers_below(count, after, node.outputs[0])
        if node.attributes.get_int("align_corners", 0):
            line = indices * 2 / m.op("Max", count - 1, 1) - 1
        else:
            line = (indices * 2 + 1) / count - 1
        lines.append(line.reshape(after, *[1] * (rank - 1 - axis)))
    matrix, columns = theta.cast(computed_type), []
    for row in range(rank):
        factors = [
            matrix.rows(row, row + 1, 1).rows(i, i + 1, 2).reshape(batch, *[1] * rank)
            for i in range(rank + 1)
        ]
        total = factors[rank]
        for factor, line in zip(factors, reversed(lines), strict=False):
            total = total + factor * line
        columns.append(total.reshape(*total.shape, 1))
    grid = m.emit("Concat", columns, (*total.shape, rank), axis=rank + 1)
    m.set_output(node.outputs[0], grid.cast(theta.dtype))
