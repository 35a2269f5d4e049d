"""Find the values that an integer input may have, from the operators that read it.

An index out of range is undefined in ONNX and an error in ONNX Runtime, and so is a misfitting
shape; inputs for a comparison must stay in range.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import tensor_of
from smelt.ir.symbolic_dims.dims import size_of

Range = tuple[int, int]
"""The lowest and the highest value, both inclusive."""

PASS_INDICES_ON = frozenset(
    {
        *("Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice"),
        *("Concat", "Split", "Expand", "Tile", "Gather", "GatherElements", "GatherND", "Pad"),
        *("Add", "Sub", "Mul", "Div", "Mod", "Abs", "Clip", "Min", "Max", "Where", "CumSum"),
    }
)
"""Operators whose result may be used as the same index; arithmetic is assumed to keep it small."""

INDEXED: Mapping[tuple[str, int], int | None] = {
    ("Gather", 1): 0,
    ("GatherElements", 1): 0,
    ("ScatterElements", 1): 0,
    ("GatherND", 1): None,
    ("ScatterND", 1): None,
    ("OneHot", 0): None,
}
"""``(operator, index operand)`` to the default ``axis`` that it indexes; None if it has none."""

LENGTHS: Mapping[tuple[str, int], tuple[int, int]] = {
    ("LSTM", 4): (0, 0),
    ("GRU", 4): (0, 0),
    ("RNN", 4): (0, 0),
    ("ReverseSequence", 1): (0, 0),
    ("Attention", 6): (1, -2),
}
"""Operands that hold lengths of at least 1.

Each maps to the operand that bounds the length, and to its axis (unless ``layout`` or ``time_axis``
gives another axis).
"""

SAMPLES: Mapping[tuple[str, int], int] = {("RoiAlign", 2): 0, ("TensorScatter", 2): 2}
"""Operands that are indices into the first axis of another operand."""

SHAPES: Mapping[tuple[str, int], Range] = {
    ("Reshape", 1): (-1, -1),
    ("Expand", 1): (1, 1),
    ("Tile", 1): (1, 2),
    ("ConstantOfShape", 0): (1, 3),
    ("Pad", 1): (0, 1),
    ("TopK", 1): (1, 1),
    ("Range", 0): (0, 0),
    ("Range", 1): (1, 5),
    ("Range", 2): (1, 1),
    ("Loop", 0): (1, 3),
    ("Slice", 1): (0, 0),
    ("Slice", 2): (1, 1),
    ("Slice", 4): (1, 1),
    ("Resize", 3): (2, 4),
}
"""Operands that hold sizes, to a range that fits any data."""

STEP_LIMIT = 10_000
"""The most consumers that are visited; indices are used near the inputs."""


def index_range(value: ir.Value, sizes: Mapping[str, int]) -> Range | None:
    """Return the range of input ``value`` if it is used as an index or a size, else None.

    ``sizes`` binds symbolic dims.
    """
    common_range: Range | None = None
    visited = {value}
    pending = deque([value])
    steps = 0
    while pending and steps < STEP_LIMIT:
        for use in pending.popleft().uses():
            steps += 1
            limits = _limits(use.node, use.idx, sizes)
            if limits is not None:
                common_range = (
                    limits if common_range is None else _intersection(common_range, limits)
                )
            elif use.node.op_type in PASS_INDICES_ON and not use.node.domain:
                fresh = [output for output in use.node.outputs if output not in visited]
                visited.update(fresh)
                pending.extend(fresh)
            for inner in _captured_inputs(use.node, use.idx):
                if inner not in visited:
                    visited.add(inner)
                    pending.append(inner)
    return common_range


def _intersection(a: Range, b: Range) -> Range:
    """Return the intersection of two ranges; the lowest possible value if it is empty."""
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else (low, low)


def _limits(node: ir.Node, index: int, sizes: Mapping[str, int]) -> Range | None:
    """Return the range that operand ``index`` of ``node`` must have, or None."""
    if node.domain:
        return None
    if (node.op_type, index) in SHAPES:
        return SHAPES[node.op_type, index]
    if (node.op_type, index) in LENGTHS:
        operand, first = LENGTHS[node.op_type, index]
        time = node.attributes.get_int("layout", node.attributes.get_int("time_axis", first))
        return 1, max(1, _axis_size(node.inputs[operand], time, sizes))
    if (node.op_type, index) in SAMPLES:
        return 0, max(0, _axis_size(node.inputs[SAMPLES[node.op_type, index]], 0, sizes) - 1)
    if (node.op_type, index) not in INDEXED:
        return None
    table = node.inputs[0]
    if node.op_type == "OneHot":
        return 0, max(0, _constant(node.inputs[1]) - 1)
    if table is None or table.shape is None:
        return 0, 0
    dims = [_size(dim, sizes) for dim in table.shape.dims]
    axis = INDEXED[node.op_type, index]
    if axis is not None and dims:
        axis_attribute = node.attributes.get("axis")
        axis = (
            axis_attribute.as_int()
            if axis_attribute is not None and not axis_attribute.is_ref()
            else axis
        )
        dims = [dims[axis]] if -len(dims) <= axis < len(dims) else [1]
    return 0, max(0, min(dims, default=1) - 1)


def _axis_size(value: ir.Value | None, axis: int, sizes: Mapping[str, int]) -> int:
    """Return the size of ``axis``, 1 if it is unknown."""
    if value is None or value.shape is None or not -len(value.shape) <= axis < len(value.shape):
        return 1
    return _size(value.shape.dims[axis], sizes)


def _size(dim: int | ir.SymbolicDim, sizes: Mapping[str, int]) -> int:
    """Return the size of ``dim``, 1 if it is unknown."""
    if isinstance(dim, int):
        return dim
    bound = size_of(dim, sizes)
    return bound if isinstance(bound, int) else 1


def _constant(value: ir.Value | None) -> int:
    """Return the first element of a constant, 1 if it is not known."""
    tensor = tensor_of(value) if value is not None else None
    return int(tensor.numpy().reshape(-1)[0]) if tensor is not None and tensor.size else 1


def _captured_inputs(node: ir.Node, index: int) -> list[ir.Value]:
    """Return the input of a Loop's or Scan's body that receives operand ``index``, as a list."""
    bodies = list(scope.subgraphs(node))
    if node.op_type not in ("Loop", "Scan") or len(bodies) != 1:
        return []
    return list(bodies[0].inputs[index : index + 1])
