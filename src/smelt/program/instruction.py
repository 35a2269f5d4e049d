"""The Program: a flat list of instructions over slots, below the graph.

A slot is written once, or by Stores box by box, and holds one tensor. Each slot has a dtype and a
shape; each instruction knows which of its inputs nobody reads afterwards. Scheduling, memory
planning and code generation work here. The form follows tenferro's ExecProgram.
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
"""Places and counts such as the ends of a Slice may hang on symbolic dims until those are fixed."""


REDUCE_AT_RUN_TIME = "smelt::ReduceAtRunTime"
"""A reduction whose second input holds the axes. Attributes: ``reduction``, its name, ``keepdims``,
and ``noop``: whether no axes mean none. Its output has the sizes that the model declares."""

EXPAND_AT_RUN_TIME = "smelt::ExpandAtRunTime"
"""An Expand whose second input holds the sizes, which must be those that the model declares."""

RANGE_AT_RUN_TIME = "smelt::RangeAtRunTime"
"""A Range that takes its limit, too, and must have as many elements as the model declares."""

DIAGONAL = "smelt::Diagonal"
"""Elements at equal places of several dims, as one dim. Attribute ``axes``: the dim of the result
that each dim becomes."""

SLICE_AT_RUN_TIME = "smelt::SliceAtRunTime"
PAD_AT_RUN_TIME = "smelt::PadAtRunTime"
TILE_AT_RUN_TIME = "smelt::TileAtRunTime"
"""Those whose further inputs hold what ONNX gives them as such."""

RESHAPE_AT_RUN_TIME = "smelt::ReshapeAtRunTime"
"""A Reshape whose second input holds the sizes. Attribute ``allowzero``."""

TOP_K_AT_RUN_TIME = "smelt::TopKAtRunTime"
"""A TopK whose second input holds how many."""

RUNNING_AT_RUN_TIME = "smelt::RunningAtRunTime"
"""A CumSum or CumProd whose second input holds the axis. Attributes: ``running``, which of the two,
``exclusive`` and ``reverse``."""

SPECTRUM = "smelt::Spectrum"
"""A discrete Fourier transform of ``[..., n, ..., parts]``, parts being real and imaginary ones or
real ones only. Attributes: ``axis``; ``length``, which n is cut or filled with zeros to, or to its
first half where real numbers come of one; ``inverse``, which divides by it; ``onesided``: only the
first half of the result, or of what is given and then the result is real."""

FAIL = "smelt::Fail"
"""Ends the run: nothing can be computed. Its output has the sizes that another result would have.
Attribute ``why``: what does not hold."""

AT_RUN_TIME = (
    REDUCE_AT_RUN_TIME,
    EXPAND_AT_RUN_TIME,
    RESHAPE_AT_RUN_TIME,
    RANGE_AT_RUN_TIME,
    SLICE_AT_RUN_TIME,
    PAD_AT_RUN_TIME,
    TILE_AT_RUN_TIME,
    TOP_K_AT_RUN_TIME,
)
"""Instructions that find out sizes as they run, and end the run if they are not those declared."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The type of one slot; ``name`` is the graph value it came from, for reports.

    ``space`` names the memory that it lives in, the one arena if empty. ``quantization`` says
    which numbers its integers stand for, where that is known. ``layout`` says how its elements lie
    in memory, row by row if it is None; ``shape`` is that of the tensor in any case. Where each run
    has sizes of its own, a ``run_sizes.Size`` stands in the shape for a number. ``bytewise``: each
    element has a byte or more, as in arrays of NumPy; else those of less than a byte are packed.
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
        """The shape as numbers, or sizes of a run; raises ValueError if a dim is symbolic."""
        found = tuple(cast(int, d) for d in self.shape if isinstance(cast(object, d), int | Size))
        if len(found) < len(self.shape):
            raise ValueError(f"slot {self.name!r} has symbolic dims: {self.shape}")
        return found

    @property
    def size(self) -> int:
        """Number of elements; raises ValueError if a dim is symbolic."""
        return prod(self.sizes)

    @property
    def stored(self) -> tuple[int, ...]:
        """The sizes in memory: those of the layout, its padding included."""
        return self.sizes if self.layout is None else self.layout.stored(self.sizes)

    @property
    def nbytes(self) -> int:
        """Bytes in memory; raises ValueError if a dim is symbolic."""
        size, bits = prod(self.stored), int(self.dtype.bitwidth)
        bits = max(bits, 8) if self.bytewise else bits
        return size * (bits // 8) if bits % 8 == 0 else (size * bits + 7) // 8

    @property
    def most_bytes(self) -> int:
        """``nbytes`` in the largest run."""
        return highest(self.nbytes)

    def box(self, box: Mapping[int, tuple[int, int]]) -> tuple[tuple[int, int], ...] | None:
        """Start and stop of each dim in memory, for a ``box`` of the tensor by axis; None for one
        that cuts a block of the layout."""
        if self.layout is not None:
            return self.layout.box(self.sizes, box)
        return tuple(box.get(axis, (0, size)) for axis, size in enumerate(self.sizes))

    def pack(self, array: np.ndarray) -> np.ndarray:
        """``array`` as the slot holds it."""
        return array if self.layout is None else self.layout.pack(array)

    def unpack(self, stored: np.ndarray) -> np.ndarray:
        """The tensor that the slot holds as ``stored``."""
        return stored if self.layout is None else self.layout.unpack(stored, self.sizes)


RESULT, ABSENT = -1, -2

REST = 2**63 - 1
"""An end of a Slice that takes all that is left, so an axis of another size gives another one."""


@dataclass(frozen=True, slots=True)
class Step:
    """An elementwise operator on the result of an instruction before it is stored.

    ``operands`` are positions among the inputs of the instruction, ``RESULT`` for what was computed
    so far, ``ABSENT`` for an optional operand that is not given.
    """

    op: str
    operands: tuple[int, ...]
    attributes: Mapping[str, AttributeValue | DotDims]


@dataclass(slots=True)
class Instruction:
    """One operation.

    ``op`` is an ONNX operator name, ``DotGeneral`` (attribute ``dims: DotDims``), or an operator
    of a target as ``domain::name``; ``attributes`` holds every attribute, defaults filled in.
    An absent optional input is slot -1. ``last_use[i]`` says that no later instruction reads
    ``inputs[i]`` and that it is no output of the program; the pass ``last_use`` fills it.
    ``origin`` names the graph node, for reports and comments in emitted code. ``bodies`` are
    Programs that control flow runs; what they read of the Program around is among ``inputs``.
    ``finish`` are operators that a target computes on each element of the result as it is stored;
    what they read is among ``inputs``, too.
    ``parts`` are the instructions that one instruction stands for, in order; only the last writes
    a slot that is stored.
    """

    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Mapping[str, AttributeValue | DotDims] = field(default_factory=dict)
    last_use: tuple[bool, ...] = ()
    origin: str = ""
    bodies: tuple[Body, ...] = ()
    finish: tuple[Step, ...] = ()
    parts: tuple[Instruction, ...] = ()

    def ints(self, name: str) -> tuple[int, ...]:
        """An attribute that holds integers; raises ValueError for others, and Unsupported E411 for
        those that hang on symbolic dims."""
        value = self.attributes[name]
        if not isinstance(value, tuple):
            raise ValueError(f"{self.op}.{name} holds no integers")
        if all(type(item) is int for item in value):
            return cast("tuple[int, ...]", value)
        for item in value:
            if isinstance(item, ir.SymbolicDim):
                raise Unsupported(
                    "E411",
                    f"{name!r} of {self.op} hangs on the size {item}",
                    at=f"node {self.origin!r}",
                    why="the attribute has to be numbers before the program is planned",
                    fix="bind the symbolic dims of the inputs",
                )
        found = [item for item in value if not isinstance(item, ir.SymbolicDim)]
        return tuple(
            cast(int, item) if isinstance(cast(object, item), Size) else int(item) for item in found
        )


@dataclass(frozen=True, slots=True)
class RunSize:
    """A size that each run has of its own: the name that the model has for it, and its bounds.

    ``symbol`` is the dim of the graph, where it has another name.
    """

    name: str
    size: Size
    symbol: str = ""


@dataclass(slots=True)
class Program:
    """Instructions in execution order over ``slots``.

    ``inputs`` and ``outputs`` are slots in the order of the model's interface; an output may
    be an input or a constant, and may occur twice. ``constants`` holds read-only
    arrays, in the sizes in which they are stored.
    ``given`` are the sizes that a run is told, ``found`` those that an instruction finds out, and
    ``told`` those of outputs that do not follow from the inputs' shapes alone. ``conditions`` are
    what has to hold of them, or a run has no result. ``carried`` are sizes of states of a loop that
    each round of its body is told.
    """

    name: str
    slots: list[Slot]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: dict[int, np.ndarray]
    instructions: list[Instruction]
    given: tuple[RunSize, ...] = ()
    found: tuple[RunSize, ...] = ()
    told: tuple[RunSize, ...] = ()
    conditions: tuple[Condition, ...] = ()
    carried: tuple[RunSize, ...] = ()

    @property
    def bodies(self) -> list[Body]:
        """The bodies of all instructions."""
        return [body for instruction in self.instructions for body in instruction.bodies]

    def bytes_of(self, constant: int) -> bytes:
        """The bytes of a constant as they lie in memory: little-endian, elements of 4 bits packed
        two to a byte, the first in the lower half."""
        return ir.Tensor(self.constants[constant], dtype=self.slots[constant].dtype).tobytes()

    def copy(self) -> Program:
        """The same, which passes may change for themselves; slots and arrays are shared."""
        copied = [
            replace(each, bodies=tuple(Body(body.program.copy()) for body in each.bodies))
            for each in self.instructions
        ]
        slots, constants = list(self.slots), dict(self.constants)
        return replace(self, slots=slots, constants=constants, instructions=copied)

    def new_slot(self, slot: Slot) -> int:
        """Append ``slot`` and return its number."""
        self.slots.append(slot)
        return len(self.slots) - 1


@dataclass(slots=True)
class Body:
    """A Program inside of an instruction; ``plan`` is what the target made of it, if it did."""

    program: Program
    plan: Any = None
