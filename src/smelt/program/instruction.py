"""The Program: a flat list of instructions over slots, below the graph.

A slot is written once, or by Stores box by box, and holds one tensor. Each slot has a dtype and a
shape; each instruction knows which of its inputs have their last use there. Scheduling, memory
planning and code generation work on this form, which follows tenferro's ExecProgram.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.ir.quantization import Quantization
from smelt.program.condition import Condition
from smelt.program.dot_dims import DotDims
from smelt.program.layout import Layout
from smelt.program.run_sizes import Size, highest

Dim: TypeAlias = int | ir.SymbolicDim
AttributeValue: TypeAlias = (
    int | float | str | bool | tuple[Dim, ...] | tuple[float, ...] | tuple[str, ...] | None
)
"""Bounds and counts, such as the ends of a Slice, may be symbolic until the dims are resolved."""


# Dynamic instructions, as in StableHLO: an input holds what the static form has as an attribute.

DYNAMIC_REDUCE = "smelt::DynamicReduce"
"""A reduction whose second input holds the axes. Attributes: ``reduction``, its name, ``keepdims``,
and ``noop``: True if an empty list reduces no axis. Its output has the declared sizes."""

DYNAMIC_EXPAND = "smelt::DynamicExpand"
"""An Expand whose second input holds the sizes, which must equal the declared ones."""

DYNAMIC_RANGE = "smelt::DynamicRange"
"""A Range that also reads its limit, and must have the declared number of elements."""

DIAGONAL = "smelt::Diagonal"
"""Elements at equal indices of several dims, as one dim. Attribute ``axes``: the dim of the result
to which each dim is mapped."""

COMPLEX_MATRICES = "smelt::ComplexMatrices"
"""The real 2x2 matrix of each complex number, for ``operators/complex_dot.py``. The operand has the
parts of each number in its last dim. Attributes: ``perm``, the order of the other dims in the
result; ``axis``, the dim of the result with the two rows of each matrix, whose columns are the last
dim; ``signs`` of the four elements, row by row."""

DYNAMIC_SLICE = "smelt::DynamicSlice"
DYNAMIC_PAD = "smelt::DynamicPad"
DYNAMIC_TILE = "smelt::DynamicTile"
"""Slice, Pad and Tile, whose starts, pads or repeats are run-time inputs."""

DYNAMIC_RESHAPE = "smelt::DynamicReshape"
"""A Reshape whose second input holds the sizes. Attribute ``allowzero``."""

DYNAMIC_TOP_K = "smelt::DynamicTopK"
"""A TopK whose second input holds k."""

DYNAMIC_CUMULATIVE = "smelt::DynamicCumulative"
"""A CumSum or CumProd whose second input holds the axis. Attributes: ``running`` (the operator),
``exclusive`` and ``reverse``."""

SPECTRUM = "smelt::Spectrum"
"""A discrete Fourier transform of ``[..., n, ..., parts]``; parts are real and imaginary, or real
only. Attributes: ``axis``; ``length``, to which n is cut or zero-padded (to its first half if the
result is real); ``inverse``, which divides by it; ``onesided``: only the first half of the result,
or of the operand, and then the result is real."""

FAIL = "smelt::Fail"
"""Aborts the run. Its output has the sizes of the result that cannot be computed. Attribute
``why``: the violated condition."""

DYNAMIC = (
    DYNAMIC_REDUCE,
    DYNAMIC_EXPAND,
    DYNAMIC_RESHAPE,
    DYNAMIC_RANGE,
    DYNAMIC_SLICE,
    DYNAMIC_PAD,
    DYNAMIC_TILE,
    DYNAMIC_TOP_K,
)
"""Instructions that compute sizes at run time, and abort the run if they differ from declared
ones."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The type of one slot; ``name`` is the graph value that it holds, for reports.

    ``space`` names its memory, the one arena if empty. ``quantization`` is the scale and zero point
    of its integers, where known. ``layout`` is the order of elements in memory, row-major if None;
    ``shape`` is that of the tensor in any case. In a runtime-sized program, a ``run_sizes.Size``
    stands for a number in the shape. ``bytewise``: elements take at least a byte each, as in NumPy
    arrays; else sub-byte elements are packed.
    """

    dtype: ir.DataType
    shape: tuple[Dim, ...]
    name: str
    space: str = ""
    quantization: Quantization | None = None
    layout: Layout | None = None
    bytewise: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the shape as numbers or run-time sizes; raises ValueError if a dim is symbolic."""
        numbers = tuple(cast(int, d) for d in self.shape if isinstance(cast(object, d), int | Size))
        if len(numbers) < len(self.shape):
            raise ValueError(f"slot {self.name!r} has symbolic dims: {self.shape}")
        return numbers

    @property
    def size(self) -> int:
        """Return the number of elements; raises ValueError if a dim is symbolic."""
        return prod(self.sizes)

    @property
    def stored(self) -> tuple[int, ...]:
        """Return the sizes in memory, including the padding of the layout."""
        return self.sizes if self.layout is None else self.layout.stored(self.sizes)

    @property
    def nbytes(self) -> int:
        """Return the number of bytes in memory; raises ValueError if a dim is symbolic."""
        size, bits = prod(self.stored), int(self.dtype.bitwidth)
        bits = max(bits, 8) if self.bytewise else bits
        return size * (bits // 8) if bits % 8 == 0 else (size * bits + 7) // 8

    @property
    def most_bytes(self) -> int:
        """Return ``nbytes`` in the largest run."""
        return highest(self.nbytes)

    def box(self, box: Mapping[int, tuple[int, int]]) -> tuple[tuple[int, int], ...] | None:
        """Return start and stop of each dim in memory for a ``box`` of the tensor, given by axis.

        None if the box cuts a block of the layout.
        """
        if self.layout is not None:
            return self.layout.box(self.sizes, box)
        return tuple(box.get(axis, (0, size)) for axis, size in enumerate(self.sizes))

    def pack(self, array: np.ndarray) -> np.ndarray:
        """Return ``array`` in the layout of the slot."""
        return array if self.layout is None else self.layout.pack(array)

    def unpack(self, stored: np.ndarray) -> np.ndarray:
        """Return the tensor that the slot holds as ``stored``."""
        return stored if self.layout is None else self.layout.unpack(stored, self.sizes)


RESULT, ABSENT = -1, -2

REST = 2**63 - 1
"""An end of a Slice that means "to the end", for any size of the axis."""


@dataclass(frozen=True, slots=True)
class Step:
    """An elementwise operator of an epilogue, applied to each element of a result before it is
    stored.

    ``operands`` are positions among the inputs of the instruction, ``RESULT`` for the value
    computed so far, ``ABSENT`` for an absent optional operand.
    """

    op: str
    operands: tuple[int, ...]
    attributes: Mapping[str, AttributeValue | DotDims]


@dataclass(slots=True)
class Instruction:
    """One operation.

    ``op`` is an ONNX operator name, ``DotGeneral`` (attribute ``dims: DotDims``), or an operator of
    a target as ``domain::name``; ``attributes`` holds every attribute, with defaults filled in. An
    absent optional input is slot -1. ``last_use[i]`` is True if no later instruction reads
    ``inputs[i]`` and it is no output of the program; the pass ``last_use`` sets it. ``origin``
    names the graph node, for reports and comments in emitted code. ``bodies`` are Programs that
    control flow runs; values of the outer Program that they read are among ``inputs``. ``epilogue``
    lists operators applied to each element of the result before it is stored; their operands are
    among ``inputs``, too. ``parts`` are the instructions that a fused instruction stands for, in
    order; only the last writes a stored slot.
    """

    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Mapping[str, AttributeValue | DotDims] = field(default_factory=dict)
    last_use: tuple[bool, ...] = ()
    origin: str = ""
    bodies: tuple[Body, ...] = ()
    epilogue: tuple[Step, ...] = ()
    parts: tuple[Instruction, ...] = ()

    def ints(self, name: str) -> tuple[int, ...]:
        """Return the attribute ``name``, a tuple of integers.

        Raises ValueError for an attribute of another type, and Unsupported E411 for integers that
        depend on symbolic dims.
        """
        value = self.attributes[name]
        if not isinstance(value, tuple):
            raise ValueError(f"{self.op}.{name} holds no integers")
        if all(type(item) is int for item in value):
            return cast("tuple[int, ...]", value)
        for item in value:
            if isinstance(item, ir.SymbolicDim):
                raise Unsupported(
                    "E411",
                    f"{name!r} of {self.op} depends on the size {item}",
                    at=f"node {self.origin!r}",
                    why="the attribute has to be numbers before the program is planned",
                    fix="bind the symbolic dims of the inputs",
                )
        numbers = [item for item in value if not isinstance(item, ir.SymbolicDim)]
        return tuple(
            cast(int, item) if isinstance(cast(object, item), Size) else int(item)
            for item in numbers
        )


@dataclass(frozen=True, slots=True)
class RunSize:
    """A size that each run sets: its C name, its bounds, and the ``symbol`` of the graph if that
    differs."""

    name: str
    size: Size
    symbol: str = ""


@dataclass(slots=True)
class Program:
    """Instructions in execution order over ``slots``.

    ``inputs`` and ``outputs`` are slots in the order of the model's interface; an output may be an
    input or a constant, and may occur twice. ``constants`` holds read-only arrays, in their stored
    sizes. The run-time sizes: a run receives ``input_sizes``; an instruction computes each of the
    ``data_dependent_sizes``; ``returned_sizes`` are output sizes that input shapes do not fix; each
    iteration of a loop body receives ``loop_sizes``, sizes of loop states. A run fails unless all
    ``conditions`` on these sizes hold.
    """

    name: str
    slots: list[Slot]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: dict[int, np.ndarray]
    instructions: list[Instruction]
    input_sizes: tuple[RunSize, ...] = ()
    data_dependent_sizes: tuple[RunSize, ...] = ()
    returned_sizes: tuple[RunSize, ...] = ()
    conditions: tuple[Condition, ...] = ()
    loop_sizes: tuple[RunSize, ...] = ()

    @property
    def bodies(self) -> list[Body]:
        """Return the bodies of all instructions."""
        return [body for instruction in self.instructions for body in instruction.bodies]

    def bytes_of(self, constant: int) -> bytes:
        """Return the bytes of a constant in memory: little-endian, 4-bit elements packed two per
        byte, the first in the lower half."""
        return ir.Tensor(self.constants[constant], dtype=self.slots[constant].dtype).tobytes()

    def copy(self) -> Program:
        """Return a copy that passes may change; slots and arrays are shared."""
        copied = [
            replace(
                instruction, bodies=tuple(Body(body.program.copy()) for body in instruction.bodies)
            )
            for instruction in self.instructions
        ]
        slots, constants = list(self.slots), dict(self.constants)
        return replace(self, slots=slots, constants=constants, instructions=copied)

    def new_slot(self, slot: Slot) -> int:
        """Append ``slot`` and return its number."""
        self.slots.append(slot)
        return len(self.slots) - 1


@dataclass(slots=True)
class Body:
    """A Program inside of an instruction; ``plan`` is the target's plan for it, or None."""

    program: Program
    plan: Any = None
