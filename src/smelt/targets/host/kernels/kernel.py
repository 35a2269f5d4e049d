"""What a kernel is: a function that prepares one instruction at plan time for many runs.

``prepare(call)`` sees shapes, dtypes and strides, and returns a ``Step`` whose ``run`` takes the
input arrays (None for an absent one), the output arrays, and the scratch arrays that it requested.
Kernels never write an input. They allocate no arrays as large as an operand, except where narrow
floats are computed in float32 (``widened``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import ml_dtypes
import numpy as np
from numpy.lib.stride_tricks import as_strided

from smelt.errors import ResourceLimit, Unsupported
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import AttributeValue
from smelt.registry import Registry, modules_of, owner_of

Array: TypeAlias = np.ndarray
MOST_DIMS = 64
"""The most dims of a NumPy array."""

Shaped: TypeAlias = tuple[tuple[int, ...], np.dtype]


@dataclass(frozen=True)
class Call:
    """One instruction with the types of its operands.

    ``inputs`` and ``outputs`` have a shape, a dtype and strides but no memory; their elements must
    not be read. ``origin`` is the name of the node that was lowered to this instruction.
    ``bodies`` are functions that run the bodies of the instruction, such as the branches of an If.
    """

    op: str
    attributes: Mapping[str, AttributeValue | DotDims]
    inputs: tuple[Array | None, ...]
    outputs: tuple[Array, ...]
    origin: str = ""
    bodies: tuple[Callable[..., tuple[Array, ...]], ...] = ()

    def input(self, index: int) -> Array:
        """Return input ``index``; raises Unsupported E202 if it is absent."""
        array = self.inputs[index] if index < len(self.inputs) else None
        if array is None:
            raise self.refuse(f"input {index} is missing")
        return array

    def has(self, index: int) -> bool:
        """True if input ``index`` is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def integer(self, name: str) -> int:
        """Return an integer attribute."""
        value = self.attributes[name]
        assert isinstance(value, int)
        return value

    def real(self, name: str) -> float:
        """Return a float attribute."""
        value = self.attributes[name]
        assert isinstance(value, int | float)
        return float(value)

    def ints(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a tuple of integers."""
        value = self.attributes[name]
        assert isinstance(value, tuple)
        numbers = tuple(int(item) for item in value if isinstance(item, int | np.integer))
        assert len(numbers) == len(value)
        return numbers

    def text(self, name: str) -> str:
        """Return a string attribute."""
        return str(self.attributes[name])

    def refuse(self, why: str) -> Unsupported:
        """Return error E202, which says why there is no kernel for this call."""
        types = [f"{a.dtype}{list(a.shape)}" for a in self.inputs if a is not None]
        return Unsupported(
            "E202",
            f"target 'host' has no kernel for this {self.op}",
            at=[f"node {self.origin!r}", *(f"operand {text}" for text in types)],
            why=why,
            fix="use the target 'onnx'",
        )


@dataclass(frozen=True)
class Step:
    """A prepared call.

    ``in_place``: inputs whose memory ``run`` may use for its output if shape and dtype agree.
    ``scratch``: shape and dtype of each scratch array.
    """

    run: Callable[..., object]
    in_place: tuple[int, ...] = ()
    scratch: Sequence[Shaped] = ()


Kernel: TypeAlias = Callable[[Call], Step]
View: TypeAlias = Callable[[Array], Array]
ViewKernel: TypeAlias = "Callable[[Call], View | None]"

KERNELS: Registry[str, Kernel] = Registry(
    "E651", lambda op: f"host kernels of {op}", modules_of("smelt.targets.host.kernels")
)
VIEWS: Registry[str, ViewKernel] = Registry(
    "E651", lambda op: f"host kernels of {op} that make views", lambda: len(KERNELS)
)
"""Kernels that return a view function of the first input, or None if a view is impossible."""


def kernel(*ops: str, wide: bool = False) -> Callable[[Kernel], Kernel]:
    """Register a kernel; with ``wide``, narrow floats run in float32 and are rounded at the end."""

    def register(prepare: Kernel) -> Kernel:
        """Register ``prepare`` for each operator."""
        for op in ops:
            KERNELS.add(op, widened(prepare) if wide else prepare, owner_of(prepare))
        return prepare

    return register


def view(op: str) -> Callable[[ViewKernel], ViewKernel]:
    """Register a function that returns how to make the result as a view of the first input."""

    def register(prepare: ViewKernel) -> ViewKernel:
        """Register ``prepare`` for the operator."""
        VIEWS.add(op, prepare, owner_of(prepare))
        return prepare

    return register


def imaginary(shape: Sequence[int], dtype: np.dtype) -> Array:
    """Return a C-contiguous array of this type without memory behind it.

    Raises ResourceLimit E501 if its bytes exceed the address space, Unsupported E404 if it has more
    dims than NumPy allows.
    """
    if len(shape) > MOST_DIMS:
        raise Unsupported(
            "E404",
            f"an intermediate value has {len(shape)} dims; the limit is {MOST_DIMS}",
            why="arrays of NumPy cannot have more",
            fix="merge dims by a Reshape before that operator",
        )
    return _imaginary(tuple(shape), dtype)


@lru_cache(1024)  # making one takes 10 us, and the values of a model have few types
def _imaginary(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Make the array of ``imaginary``: an empty buffer, seen with the strides of a full array.

    Kernels are prepared with it before memory exists: they read its shape, dtype and strides.
    """
    empty = np.empty(0, f"V{dtype.itemsize}")  # as_strided rejects some types of ml_dtypes
    strides, step = [], dtype.itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    if step >= 2**63:
        raise ResourceLimit(
            "E501",
            f"a value of the dims {list(shape)} has {step:,} bytes",
            why="addresses within a value are 64-bit numbers",
            fix="run the model at smaller sizes",
        )
    return as_strided(empty, shape, tuple(reversed(strides))).view(dtype)


FLOAT8_TYPES = tuple(
    np.dtype(getattr(ml_dtypes, f"float8_{form}"))
    for form in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")
)
NARROW = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), *FLOAT8_TYPES)


def is_narrow(dtype: np.dtype) -> bool:
    """True for 16-bit and 8-bit floats."""
    return dtype in NARROW


def widened(prepare: Kernel) -> Kernel:
    """Wrap ``prepare`` so that narrow floats are computed in float32 and rounded at the end.

    Narrow floats are float16, bfloat16 and the four types of float8. Other types stay.
    """

    def prepare_wide(call: Call) -> Step:
        """Return the step of ``prepare``, in float32 if any array is of a narrow float."""
        all_arrays = [array for array in (*call.inputs, *call.outputs) if array is not None]
        if not any(is_narrow(array.dtype) for array in all_arrays):
            return prepare(call)
        wide_inputs = tuple(None if a is None else _wide_type(a) for a in call.inputs)
        wide_outputs = tuple(_wide_type(a) for a in call.outputs)
        step = prepare(replace(call, inputs=wide_inputs, outputs=wide_outputs))
        count = len(wide_inputs)

        def run(*arrays: Array | None) -> None:
            """Run the step on float32 copies of inputs, and round its results to the outputs.

            The step writes to new arrays of the types of ``wide_outputs``, which have no memory.
            """
            operands = [None if a is None else _wide(a) for a in arrays[:count]]
            results = [np.empty(a.shape, a.dtype) for a in wide_outputs]
            scratch = [np.empty(shape, dtype) for shape, dtype in step.scratch]
            step.run(*operands, *results, *scratch)
            for target, result in zip(arrays[count:], results, strict=True):
                assert target is not None
                np.copyto(target, result, casting="unsafe")

        return Step(run)

    return prepare_wide


def _wide_type(array: Array) -> Array:
    """Return ``array``, or an array of its shape in float32 and without memory if it is narrow."""
    if not is_narrow(array.dtype):
        return array
    return imaginary(array.shape, np.dtype(np.float32))


def _wide(array: Array) -> Array:
    """Return ``array`` in float32 if it is a narrow float."""
    return array.astype(np.float32) if is_narrow(array.dtype) else array
