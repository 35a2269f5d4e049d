"""smelt's shape rules for operators where the library, onnx-shape-inference 0.4, guesses.

The library takes the parts of a ``Split`` with run-time sizes for equal, returns a vector for
``Unique`` along an axis, and drops the batch of the ``Scan`` of opset 8. Here an unknown size stays
unknown. The tables ``_OWN`` and ``_WRAPPED`` list all operators; most rules are in files of their
own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import onnx_ir as ir
from onnx_shape_inference import (
    SYM_DATA_KEY,
    OpUsageError,
    ShapeInferenceContext,
    ShapeInferenceError,
)

from smelt.errors import InternalError, SmeltError
from smelt.ir.opset import REDUCTIONS
from smelt.ir.shapes.chosen_sizes import (
    clip_rule,
    descending_range_rule,
    division_rule,
    maximum_rule,
    minimum_rule,
    modulo_rule,
    where_rule,
)
from smelt.ir.shapes.control_flow_shapes import infer_if, infer_loop, with_steady_states
from smelt.ir.shapes.floors import flattened
from smelt.ir.shapes.frame_shapes import counted_frames
from smelt.ir.shapes.ml_shapes import register_ml
from smelt.ir.shapes.pool_shapes import counted_windows
from smelt.ir.shapes.reduce_shapes import infer_reduction, with_sizes
from smelt.ir.shapes.reshape_shapes import counted_first
from smelt.ir.shapes.resize_shapes import infer_resize
from smelt.ir.shapes.ruled_out import why_ruled_out
from smelt.ir.shapes.shape_registry import ShapeRule, registry, rewrap
from smelt.ir.shapes.sizes_from_sizes import (
    infer_concat,
    infer_constant_of_shape,
    infer_mel,
    infer_one_hot,
    infer_pad,
    infer_split,
    infer_tile,
)
from smelt.ir.shapes.slice_shapes import slice_rule
from smelt.ir.shapes.squeeze_shapes import infer_squeeze
from smelt.ir.shapes.tracked_elements import check_elements, check_sizes
from smelt.ir.value_facts.element_type import type_by_schema


def register_own_rules() -> None:
    """Replace the library's rules by smelt's; call this once."""
    for op_type, own_rule in _OWN.items():
        rewrap(partial(_choose, own_rule), "", op_type)
    for op_type, wrap in _WRAPPED.items():
        rewrap(wrap, "", op_type)
    register_ml()


def contain_failures() -> None:
    """Wrap each library rule so that an unexpected exception leaves the node's outputs unknown.

    An error that a rule raises on purpose, because the model is wrong, passes through. Call this
    before smelt's rules are registered: an exception in one of those is a fault of smelt.
    """
    _wrap_all(lambda rule: _contained(rule) if _is_library_rule(rule) else rule)


def check_results() -> None:
    """Wrap each rule so that its results are checked, and its unexpected exceptions become E907.

    An error about the model names the node. A node that is noted as failing raises none.
    """
    _wrap_all(_checked_rule)


def _wrap_all(wrap: Callable[[ShapeRule], ShapeRule]) -> None:
    """Replace each registered rule by ``wrap(rule)``, for checks that hold for all operators."""
    for domain, op_type, _ in list(registry.iter_supported()):
        rewrap(wrap, domain, op_type)


def _is_library_rule(rule: ShapeRule) -> bool:
    """True if the library defines ``rule``."""
    return rule.__module__.partition(".")[0] == "onnx_shape_inference"


_FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


def _contained(rule: ShapeRule) -> ShapeRule:
    """Wrap a library rule so that its unexpected exceptions are ignored."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Run the rule; an exception that is no error about the model leaves outputs unknown."""
        try:
            rule(context, node)
        except (OpUsageError, ShapeInferenceError):
            raise
        except _FAILURES:
            pass

    return infer


def _checked_rule(rule: ShapeRule) -> ShapeRule:
    """Wrap a rule: its unexpected failures become E907, and its results are checked."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Run the rule, report its failures, and check its results."""
        try:
            rule(context, node)
        except SmeltError:
            raise
        except (OpUsageError, ShapeInferenceError) as error:
            if not why_ruled_out(node):
                raise OpUsageError(node, error.message) from error
        except _FAILURES as error:
            raise InternalError(
                "E907",
                f"the shape rule of {node.op_type} fails",
                at=f"node {node.name!r}",
                why=f"{type(error).__name__}: {error}",
                fix="report it with the model, to the package that declares the rule",
            ) from error
        for output in node.outputs:
            check_sizes(context, node, output)
            if SYM_DATA_KEY in output.metadata_props:
                check_elements(context, output)

    return infer


def _reshape_rule(library_rule: ShapeRule) -> ShapeRule:
    """Wrap the rule of Reshape: first try to count factors, which is faster than SymPy."""
    return counted_first(_with_numbers(library_rule))


def _with_numbers(library_rule: ShapeRule) -> ShapeRule:
    """Wrap a rule so that dims whose text is a number become ints: ``4`` for ``4*N // N``."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shape, then turn dims whose text is a number into ints."""
        library_rule(context, node)
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


def _typed_by_schema(library_rule: ShapeRule) -> ShapeRule:
    """Wrap a rule so that each result has the type that the operator's schema says.

    The library gives every result the type of the first operand. It writes that type into the
    existing type object, which copies of a model share; so types are removed before its rule runs.
    A result whose type neither the schema nor the rule determines gets its declared type back.
    """

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Infer the shapes, then set the types that the schema says."""
        schema_types = [type_by_schema(node, output, context.opset) for output in node.outputs]
        declared_types = [output.type for output in node.outputs]
        for output in node.outputs:
            output.type = None
        library_rule(context, node)
        for output, dtype, type_ in zip(node.outputs, schema_types, declared_types, strict=True):
            if dtype is not None:
                output.type = ir.TensorType(dtype)
            elif output.type is None:
                output.type = type_

    return infer


OwnRule: TypeAlias = Callable[[ShapeInferenceContext, ir.Node], bool]
"""A rule that returns True if it handled the node, False to leave it to the library's rule."""


def _choose(own_rule: OwnRule, library_rule: ShapeRule) -> ShapeRule:
    """Return a rule that calls ``own_rule`` and, if that returns False, ``library_rule``."""

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        """Call ``own_rule``; if it does not handle the node, call the library's rule."""
        if not own_rule(context, node):
            library_rule(context, node)

    return infer


def _unique(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer Unique along an axis; False without an axis.

    The number of distinct slices is a new symbol. Output 2, the inverse indices, has one element
    for each slice of the input; the others have one for each distinct slice.
    """
    source, axis = node.inputs[0], node.attributes.get("axis")
    if axis is None or source is None:
        return False
    shape, count = None, context.new_symbolic_dim()
    if source.shape is not None:
        dims = list(source.shape.dims)
        if not -len(dims) <= axis.as_int() < len(dims):
            context.record_error(node, f"there is no axis {axis.as_int()} in {len(dims)} dims")
            return True
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


def _scan(context: ShapeInferenceContext, node: ir.Node) -> bool:
    """Infer nothing for the Scan of opset 8, whose batch dim the library ignores; False for later
    opsets.
    """
    return bool(context.opset < 9)


_OWN: dict[str, OwnRule] = {
    "Concat": infer_concat,
    "ConstantOfShape": infer_constant_of_shape,
    "If": infer_if,
    "Loop": infer_loop,
    "MelWeightMatrix": infer_mel,
    "OneHot": infer_one_hot,
    "Pad": infer_pad,
    "Resize": infer_resize,
    "Scan": _scan,
    "Split": infer_split,
    "Squeeze": infer_squeeze,
    "Tile": infer_tile,
    "Unique": _unique,
    "Upsample": infer_resize,
    **dict.fromkeys(sorted(REDUCTIONS), infer_reduction),
}

_WRAPPED: dict[str, Callable[[ShapeRule], ShapeRule]] = {
    **dict.fromkeys(
        ("Attention", "BatchNormalization", "LinearAttention", "RMSNormalization"), _typed_by_schema
    ),
    "Clip": clip_rule,
    "Conv": flattened,
    "Div": division_rule,
    "Max": maximum_rule,
    "Min": minimum_rule,
    "Mod": modulo_rule,
    "Range": descending_range_rule,
    **dict.fromkeys(("ReduceProd", "ReduceSum"), with_sizes),
    "Reshape": _reshape_rule,
    "Scan": with_steady_states,
    "STFT": lambda rule: flattened(counted_frames(rule)),
    "Slice": slice_rule,
    "Where": where_rule,
    **dict.fromkeys(
        ("AveragePool", "LpPool", "MaxPool"), lambda rule: flattened(counted_windows(rule))
    ),
}
