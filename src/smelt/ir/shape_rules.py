"""Shape rules of our own, for operators where onnx-shape-inference 0.4 guesses.

``Split`` and ``Squeeze`` whose sizes or axes are computed at run time, ``Unique`` along an axis,
the batched ``Scan`` of opset 8: the library assumes equal parts, squeezes every 1, returns a
vector, forgets the batch. Here what is not known stays unknown. ``If`` and ``Loop`` have a file
of their own. ``register_shape_rule`` takes rules for operators of other domains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import onnx_ir as ir
from onnx_shape_inference import (
    SYM_DATA_KEY,
    OpUsageError,
    ShapeInferenceContext,
    ShapeInferenceError,
    registry,
)

from smelt.ir.control_flow_shapes import infer_if, infer_loop
from smelt.ir.reshape_shapes import counted_first
from smelt.ir.tracked_elements import MAX_ELEMENTS, check_elements

ShapeRule: TypeAlias = Callable[[ShapeInferenceContext, ir.Node], None]


def register_shape_rule(
    domain: str, op_type: str, since_version: int = 1
) -> Callable[[ShapeRule], ShapeRule]:
    """Decorate the rule of an operator: it sets dtype and shape of each output it knows."""
    decorate: Callable[[ShapeRule], ShapeRule] = registry.register(
        domain, op_type, since_version=since_version
    )
    return decorate


def register_own_rules() -> None:
    """Put our rules in the place of the library's; to be called once."""
    for op_type, own in _OWN.items():
        for version in registry.version_boundaries("", op_type):
            theirs = registry.get("", op_type, version)
            if theirs is not None:
                registry.register("", op_type, since_version=version)(_choose(own, theirs))
    for op_type, wrap in (("Slice", _bounded), ("Reshape", _counted_or_settled)):
        for version in registry.version_boundaries("", op_type):
            theirs = registry.get("", op_type, version)
            if theirs is not None:
                registry.register("", op_type, since_version=version)(wrap(theirs))


def contain_failures() -> None:
    """Let a rule that fails on a node leave its outputs unknown instead of ending inference.

    Errors that a rule raises on purpose, because the model is wrong, pass through.
    """
    for domain, op_type, versions in list(registry.iter_supported()):
        for version in versions:
            rule = registry.get(domain, op_type, version)
            if rule is not None:
                registry.register(domain, op_type, since_version=version)(_contained(rule))


_FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


def _contained(rule: ShapeRule) -> ShapeRule:
    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        try:
            rule(context, node)
        except (OpUsageError, ShapeInferenceError):
            raise
        except _FAILURES:
            pass
        for output in node.outputs:
            if SYM_DATA_KEY in output.metadata_props:
                check_elements(context, output)

    return infer


END = 2**31 - 1
"""An end from here on means the end, whatever the size: no dim is longer."""


def _bounded(theirs: ShapeRule) -> ShapeRule:
    """Slices of an unknown dim: ``x[0:5]`` has min(N, 5) rows, where the library says 5."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        theirs(context, node)
        source, output = node.inputs[0], node.outputs[0]
        if source is None or source.shape is None or output.shape is None:
            return
        ranges = _ranges(node, len(source.shape))
        dims: list[int | ir.SymbolicDim] = []
        for axis, (before, after) in enumerate(zip(source.shape, output.shape, strict=True)):
            if isinstance(before, int) or not (isinstance(after, int) or axis in ranges):
                dims.append(after)
                continue
            size = _rows(before, *ranges.get(axis, (-1, -1, -1)))
            guess = context.new_symbolic_dim() if isinstance(after, int) else after
            dims.append(guess if size is None else size)
        output.shape = ir.Shape(dims)

    return infer


def _counted_or_settled(theirs: ShapeRule) -> ShapeRule:
    return counted_first(_settled(theirs))


def _settled(theirs: ShapeRule) -> ShapeRule:
    """Sizes that a -1 stands for: the library leaves ``4*N // N`` a symbol, called ``4``."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        theirs(context, node)
        output = node.outputs[0]
        if output.shape is None:
            return
        names = [None if isinstance(dim, int) else dim.value for dim in output.shape.dims]
        if any(name is not None and name.isdecimal() for name in names):
            output.shape = ir.Shape(
                [
                    int(name) if name is not None and name.isdecimal() else dim
                    for name, dim in zip(names, output.shape.dims, strict=True)
                ]
            )

    return infer


def _rows(dim: ir.SymbolicDim, start: int, end: int, step: int) -> int | ir.SymbolicDim | None:
    """How many rows ``[start:end]`` leaves of an unknown dim; None unless it runs forward."""
    if step != 1 or start < 0 or end < 0 or dim.value is None:
        return None
    if start >= end:
        return 0
    if end >= END:
        return dim if start == 0 else ir.SymbolicDim(f"Max(0, {dim.value} - {start})")
    last = f"Min({end}, {dim.value})"
    return ir.SymbolicDim(last if start == 0 else f"Max(0, {last} - {start})")


def _ranges(node: ir.Node, rank: int) -> dict[int, tuple[int, int, int]]:
    """Start, end and step by axis, where all of them are constant; empty if some are not."""
    starts, ends, axes, steps = (_constant_ints(node, index) for index in range(1, 5))
    if starts is None or ends is None or any(_at_run_time(node, index) for index in range(1, 5)):
        return {}
    axes = axes if axes is not None else list(range(len(starts)))
    steps = steps if steps is not None else [1] * len(starts)
    if len({len(starts), len(ends), len(axes), len(steps)}) != 1:
        return {}
    rows = zip(axes, starts, ends, steps, strict=True)
    return {axis % rank: (start, end, step) for axis, start, end, step in rows}


def _constant_ints(node: ir.Node, index: int) -> list[int] | None:
    """A constant operand as a list; None if it is absent or computed."""
    value = node.inputs[index] if len(node.inputs) > index else None
    if value is None or value.is_graph_input():
        return None
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None else [int(item) for item in tensor.numpy().reshape(-1)]


OwnRule: TypeAlias = Callable[[ShapeInferenceContext, ir.Node], bool]


def _choose(own: OwnRule, theirs: ShapeRule) -> ShapeRule:
    """Our rule for the nodes it claims by returning True, theirs for the others."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        if not own(context, node):
            theirs(context, node)

    return infer


def _at_run_time(node: ir.Node, index: int) -> bool:
    """True if input ``index`` is given, but no constant."""
    if len(node.inputs) <= index:
        return False
    value = node.inputs[index]
    if value is None:
        return False
    return value.is_graph_input() or ir.convenience.get_const_tensor(value) is None


def _split(context: ShapeInferenceContext, node: ir.Node) -> bool:
    if not _at_run_time(node, 1):
        return False
    source = node.inputs[0]
    if source is None:
        return False
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    for output in node.outputs:
        shape = None
        if source.shape is not None and -len(source.shape) <= axis < len(source.shape):
            dims = list(source.shape.dims)
            dims[axis] = context.new_symbolic_dim()
            shape = ir.Shape(dims)
        context.set_shape_and_dtype(output, shape, source.dtype)
    return True


def _squeeze(context: ShapeInferenceContext, node: ir.Node) -> bool:
    source = node.inputs[0]
    if source is None:
        return False
    if _at_run_time(node, 1):
        context.set_shape_and_dtype(node.outputs[0], _squeezed_rank(context, node), source.dtype)
        return True
    given = "axes" in node.attributes or (len(node.inputs) > 1 and node.inputs[1] is not None)
    if given or source.shape is None or source.shape.is_static():
        return False
    # Without axes every 1 goes, and a symbolic dim may be one.
    context.set_shape_and_dtype(node.outputs[0], None, source.dtype)
    return True


def _squeezed_rank(context: ShapeInferenceContext, node: ir.Node) -> ir.Shape | None:
    """A shape of unknown dims, if the number of axes tells the rank."""
    source, axes = node.inputs[0], node.inputs[1]
    if source is None or axes is None or source.shape is None or axes.shape is None:
        return None
    if len(axes.shape) != 1 or not isinstance(axes.shape[0], int):
        return None
    rank = len(source.shape) - axes.shape[0]
    return ir.Shape([context.new_symbolic_dim() for _ in range(rank)]) if rank >= 0 else None


def _unique(context: ShapeInferenceContext, node: ir.Node) -> bool:
    source, axis = node.inputs[0], node.attributes.get("axis")
    if axis is None or source is None:
        return False
    shape, count = None, context.new_symbolic_dim()
    if source.shape is not None:
        dims = list(source.shape.dims)
        dims[axis.as_int()] = count
        shape = ir.Shape(dims)
    context.set_shape_and_dtype(node.outputs[0], shape, source.dtype)
    for index, output in enumerate(node.outputs[1:], start=1):
        length = context.new_symbolic_dim() if index == 2 else count
        if index == 2 and source.shape is not None:
            known = source.shape[axis.as_int()]
            length = known if not isinstance(known, ir.SymbolicDim) or known.value else length
        context.set_shape_and_dtype(output, ir.Shape([length]), ir.DataType.INT64)
    return True


def _concat(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Long vectors of integers: the library would invent a symbol for each unknown element."""
    first = node.inputs[0]
    if first is None or first.dtype not in (ir.DataType.INT64, ir.DataType.INT32):
        return False
    total: int | ir.SymbolicDim = 0
    for value in node.inputs:
        if value is None or value.shape is None or len(value.shape) != 1:
            return False
        total = total + value.shape[0]
    if isinstance(total, int) and total <= MAX_ELEMENTS:
        return False
    context.set_shape_and_dtype(node.outputs[0], ir.Shape([total]), first.dtype)
    return True


def _scan(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Scan of opset 8 has a batch dimension, which the library does not know."""
    return bool(context.opset < 9)


_OWN: dict[str, OwnRule] = {
    "Concat": _concat,
    "If": infer_if,
    "Loop": infer_loop,
    "Scan": _scan,
    "Split": _split,
    "Squeeze": _squeeze,
    "Unique": _unique,
}
