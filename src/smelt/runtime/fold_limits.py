"""Limits of constant folding: known result sizes, little work, defined results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.same_shape import static_shape
from smelt.runtime.integer_cast import is_integer

SIZE_LIMIT = 64 << 20
"""The most bytes of a node's outputs; a larger constant costs more file size than it saves time."""

WORK_LIMIT = 1 << 26
"""The most multiplications of one node, about a second in NumPy."""

QUADRATIC = frozenset({"Attention", "Einsum", "NonMaxSuppression", "Resize"})
"""Operators that may read a whole operand for each element of the result."""

CUBIC_TAPS = 4
"""The most elements that Resize reads along an axis for each result element."""

Inputs = Sequence[np.ndarray | None]


def is_bounded(node: ir.Node, inputs: Inputs, limit: int) -> bool:
    """True if the outputs surely fit ``limit`` bytes, and the work ``WORK_LIMIT``."""
    present_inputs = [array for array in inputs if array is not None]
    count = _output_elements(node, inputs)
    if count is None:
        return False
    if any(output.dtype in (None, ir.DataType.STRING) for output in node.outputs):
        return False
    widest = max((output.dtype.bitwidth for output in node.outputs if output.dtype), default=64)
    if count * widest > limit * 8 or sum(array.nbytes for array in present_inputs) > 4 * limit:
        return False
    return _work(node, present_inputs, count) <= WORK_LIMIT


def _work(node: ir.Node, inputs: Sequence[np.ndarray], count: int) -> int:
    """Return an upper bound of the multiplications; 0 for operators that are linear in
    their size.
    """
    if node.op_type in ("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul"):
        first = inputs[0].shape if inputs else ()
        summed = 0 if node.attributes.get_int("transA", 0) else -1
        return count * (first[summed] if first else 1)
    kernel = node.attributes.get_ints("kernel_shape", ())
    if "Pool" in node.op_type:
        return count * math.prod(kernel) if kernel else inputs[0].size
    if node.op_type in ("LSTM", "GRU", "RNN"):
        rows = math.prod(inputs[0].shape[:2])
        return rows * sum(array.size for array in inputs[1:3])
    if node.op_type == "Resize" and not node.attributes.get_int("antialias", 0):
        return count * CUBIC_TAPS
    if node.op_type in QUADRATIC or "Conv" in node.op_type:
        return count * max((array.size for array in inputs), default=1)
    return 0


def _output_elements(node: ir.Node, inputs: Inputs) -> int | None:
    """Return the number of elements of all outputs, None if it is unknown.

    It follows from declared shapes, or from the operands' values.
    """
    shapes = [static_shape(output) for output in node.outputs]
    known_counts = [math.prod(shape) for shape in shapes if shape is not None]
    if len(known_counts) == len(shapes):
        return sum(known_counts)
    size = SIZES.get(node.op_type)
    try:
        return size(inputs) if size is not None else None
    except (TypeError, IndexError, ValueError, OverflowError, ZeroDivisionError):
        return None  # an operand is absent or has the wrong rank


def _items(array: np.ndarray | None) -> list[int]:
    """Return the elements of ``array`` as ints; TypeError for an absent operand."""
    if array is None:
        raise TypeError("absent operand")
    return [int(item) for item in array.reshape(-1)]


def _expanded(inputs: Inputs) -> int:
    """Return the number of elements of an Expand's result."""
    shape = inputs[0].shape if inputs[0] is not None else ()
    target = _items(inputs[1])
    longest = max(len(shape), len(target))
    padded_shape = (1,) * (longest - len(shape)) + shape
    padded_target = (1,) * (longest - len(target)) + tuple(target)
    return math.prod(
        max(a, b) if a and b else 0 for a, b in zip(padded_shape, padded_target, strict=True)
    )


def _size(array: np.ndarray | None) -> int:
    """Return the number of elements, 0 for an absent operand."""
    return array.size if array is not None else 0


def _rank(array: np.ndarray | None) -> int:
    """Return the rank, 0 for an absent operand."""
    return array.ndim if array is not None else 0


def _range(inputs: Inputs) -> int:
    """Return the number of elements of a Range."""
    start, stop, step = (float(array) for array in inputs if array is not None)
    return max(0, math.ceil((stop - start) / step))


def _selected(inputs: Inputs) -> int:
    """Return an upper bound for NonMaxSuppression: three numbers for each box of each class."""
    scores = inputs[1].shape if inputs[1] is not None else (0,)
    return 3 * math.prod(scores)


SIZES: dict[str, Callable[[Inputs], int]] = {
    "ConstantOfShape": lambda inputs: math.prod(_items(inputs[0])),
    "Expand": _expanded,
    "Tile": lambda inputs: _size(inputs[0]) * math.prod(_items(inputs[1])),
    "Range": _range,
    "Reshape": lambda inputs: _size(inputs[0]),
    "Squeeze": lambda inputs: _size(inputs[0]),
    "Unsqueeze": lambda inputs: _size(inputs[0]),
    "Slice": lambda inputs: _size(inputs[0]),
    "Split": lambda inputs: _size(inputs[0]),
    "Concat": lambda inputs: sum(_size(array) for array in inputs),
    "NonZero": lambda inputs: _size(inputs[0]) * max(1, _rank(inputs[0])),
    "Compress": lambda inputs: _size(inputs[0]),
    "NonMaxSuppression": _selected,
    "Unique": lambda inputs: 4 * _size(inputs[0]),
    "Shape": lambda inputs: _rank(inputs[0]),
    "Size": lambda inputs: 1,
}


def is_undefined(node: ir.Node, inputs: Inputs) -> bool:
    """True if runtimes may differ on the result, so that it must not be folded.

    ONNX leaves it undefined, a runtime traps, or some runtimes compute integers in doubles, which
    are inexact here.
    """
    present_inputs = [array for array in inputs if array is not None]
    if node.op_type in THROUGH_DOUBLES and present_inputs and is_integer(present_inputs[0].dtype):
        return not _is_exact(node.op_type, present_inputs)
    if node.op_type in ("Div", "Mod") and present_inputs[0].dtype.kind in "iu":
        dividend, divisor = present_inputs[:2]
        lowest = np.iinfo(dividend.dtype).min  # 0 for unsigned integers, which cannot overflow
        overflows = lowest < 0 and np.any(dividend == lowest) and np.any(divisor == -1)
        return bool(np.any(divisor == 0) or overflows)
    if node.op_type in ("Cast", "CastLike"):
        return _cast_undefined(node, present_inputs[0])
    if node.op_type == "BitShift":
        return bool(np.any(present_inputs[1] >= present_inputs[1].dtype.itemsize * 8))
    return False


THROUGH_DOUBLES = frozenset(
    {
        *("Pow", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean"),
        *("ReduceProd", "ReduceSum", "ReduceSumSquare"),
    }
)
"""Operators whose integers some runtimes convert to doubles and back."""


def _is_exact(op_type: str, inputs: Sequence[np.ndarray]) -> bool:
    """True if doubles and the element type are exact for every intermediate and final result."""
    array = inputs[0]
    largest = min(2.0**53, float(np.iinfo(array.dtype).max))
    sizes = np.abs(array.astype(np.float64))
    if op_type == "Pow":
        with np.errstate(all="ignore"):
            powers = np.power(sizes, inputs[1].astype(np.float64))
        return bool(np.all(powers <= largest))
    if op_type == "ReduceProd":
        with np.errstate(all="ignore"):
            return bool(np.prod(np.maximum(sizes, 1)) <= largest)
    squares = sizes**2 if op_type in ("ReduceL2", "ReduceSumSquare") else sizes
    return bool(squares.sum() <= largest)


def _cast_undefined(node: ir.Node, source: np.ndarray) -> bool:
    """True if a float is NaN, infinite or out of range of the integer type.

    Casts of out-of-range integers are defined: they drop the higher bits.
    """
    target = node.outputs[0].dtype
    if target is None or not target.is_integer() or is_integer(source.dtype):
        return False
    if source.dtype.kind not in "fV":
        return False
    bits = target.bitwidth - int(target.is_signed())
    low, high = -(2**bits) if target.is_signed() else 0, 2**bits
    truncated = np.trunc(source.astype(np.float64))
    return not bool(np.all((truncated >= low) & (truncated < high)))
