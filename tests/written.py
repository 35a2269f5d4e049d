"""Small Programs written by hand, and a way to run them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.program.dot_dims import DotDims
from smelt.program.instruction import AttributeValue, Dim, Instruction, Program, Slot
from smelt.targets.host.emit import Binder
from smelt.targets.host.runner import lay_out

FLOAT = ir.DataType.FLOAT


class Written:
    """A Program in the making: ``x = w.input(2, 3)``, ``y = w.op("Relu", x)``, ``w.program(y)``."""

    def __init__(self) -> None:
        self.made = Program("written", [], (), (), {}, [])

    def slot(self, *shape: Dim, dtype: ir.DataType = FLOAT) -> int:
        return self.made.new_slot(Slot(dtype, shape, f"s{len(self.made.slots)}"))

    def input(self, *shape: Dim, dtype: ir.DataType = FLOAT) -> int:
        slot = self.slot(*shape, dtype=dtype)
        self.made.inputs += (slot,)
        return slot

    def constant(self, array: np.ndarray) -> int:
        slot = self.slot(*array.shape, dtype=ir.DataType.from_numpy(array.dtype))
        self.made.constants[slot] = array
        return slot

    def op(
        self,
        op: str,
        *inputs: int,
        shape: tuple[Dim, ...] | None = None,
        dtype: ir.DataType | None = None,
        **attributes: AttributeValue | DotDims,
    ) -> int:
        """One instruction; the type of its result is that of its first input unless given."""
        first = self.made.slots[inputs[0]]
        output = self.slot(*(first.shape if shape is None else shape), dtype=dtype or first.dtype)
        self.made.instructions.append(Instruction(op, inputs, (output,), attributes, (), op))
        return output

    def transpose(self, slot: int, *perm: int) -> int:
        shape = self.made.slots[slot].shape
        return self.op("Transpose", slot, shape=tuple(shape[i] for i in perm), perm=perm)

    def dot(
        self,
        lhs: int,
        rhs: int,
        dims: DotDims,
        *,
        dtype: ir.DataType | None = None,
        semiring: str = "sum_product",
    ) -> int:
        left, right = self.made.slots[lhs].shape, self.made.slots[rhs].shape
        shape = [left[i] for i in (*dims.lhs_batch, *dims.lhs_free(len(left)))]
        shape += [right[i] for i in dims.rhs_free(len(right))]
        return self.op(
            "DotGeneral", lhs, rhs, shape=tuple(shape), dtype=dtype, dims=dims, semiring=semiring
        )

    def program(self, *outputs: int) -> Program:
        self.made.outputs = outputs
        return self.made


def one_dot(
    lhs: tuple[int, ...], rhs: tuple[int, ...], dims: DotDims, **options: object
) -> Program:
    """A Program of one DotGeneral over inputs of these shapes."""
    w = Written()
    return w.program(w.dot(w.input(*lhs), w.input(*rhs), dims, **options))  # type: ignore[arg-type]


def evaluate(program: Program, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
    """What a static Program computes."""
    layout = lay_out(program)
    run = Binder(layout.memory, layout.prepared).bind()
    with np.errstate(all="ignore"):
        return run(*inputs)


def counting(program: Program) -> list[np.ndarray]:
    """Inputs of small whole numbers, no two alike in a row, so that sums are exact."""
    arrays = []
    for slot in program.inputs:
        described = program.slots[slot]
        shape = [int(str(dim)) for dim in described.shape]
        numbers = np.arange(int(np.prod(shape)), dtype=np.int64) * 7 % 11 - 5
        arrays.append(numbers.reshape(shape).astype(described.dtype.numpy()))
    return arrays


def ops(program: Program) -> list[str]:
    """The operators of ``program`` in order."""
    return [instruction.op for instruction in program.instructions]


def dims_of(program: Program) -> DotDims:
    """The dimension numbers of the only DotGeneral."""
    (found,) = [i for i in program.instructions if i.op == "DotGeneral"]
    dims = found.attributes["dims"]
    assert isinstance(dims, DotDims)
    return dims


def shape_of(program: Program, slot: int) -> tuple[Dim, ...]:
    return program.slots[slot].shape
