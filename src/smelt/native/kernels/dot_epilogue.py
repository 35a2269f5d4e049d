"""The epilogue of a DotGeneral: its side operands by batch, row and column."""

from __future__ import annotations

from collections.abc import Sequence

from smelt.native.kernels.dot_layout import at
from smelt.native.kernels.epilogue import (
    Epilogue,
    SideOperand,
    epilogue_of,
    merged_strides,
)
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.program.dot_dims import DotDims
from smelt.program.run_sizes import same


def side_operand_strides(instance: Instance, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the strides of a side operand by batch dim, row and column; None if they do not
    merge."""
    dims, result = instance.instruction.attributes["dims"], instance.output_shape()
    assert isinstance(dims, DotDims)
    batch = len(dims.lhs_batch)
    rows = batch + len(dims.lhs_free(len(instance.shape(0))))
    batch_groups = [(i,) for i in range(batch) if not same(result[i], 1)]
    groups = (*batch_groups, range(batch, rows), range(rows, len(result)))
    return merged_strides(shape, result, groups)


def dot_epilogue(cx: KernelContext, variables: Sequence[str]) -> Epilogue:
    """Return the epilogue of one product of the batch; ``variables`` are the
    loops over the batch."""

    def side_operand(position: int) -> SideOperand:
        """Return the pointer to an input for this product, and its strides along
        rows and columns."""
        operand = cx.input(position)
        strides = side_operand_strides(cx, operand.shape)
        assert strides is not None  # fusion checked ``side_operand_strides``
        return SideOperand(at(operand.name, strides[:-2], variables), *strides[-2:])

    return epilogue_of(cx, side_operand)
