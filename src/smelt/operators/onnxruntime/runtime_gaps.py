"""Runtime gaps of ONNX Runtime: ONNX operators and element types without a kernel, with bodies.

``runtime_defects.py`` lists operators that ONNX Runtime computes wrong; both tables are applied in
the same way. Frontends and passes use operators as ONNX defines them, and targets see them
unchanged. Only when a model is written, or opened in ONNX Runtime, a node with a row here becomes a
call of a function with that body (``functions.py``). Loading restores the operator. An Einsum of
empty operands and a Resize of some axes have no row: their shapes and attributes decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.opset import attribute_names, default_attribute, opset_of
from smelt.ir.value_facts.element_type import ElementTypes
from smelt.operators.declare import Attribute, Attributes, Body, Definition
from smelt.operators.elementwise import ROWS as ROWS_OF_ELEMENTS
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.onnxruntime import empty_einsum
from smelt.operators.onnxruntime.empty_einsum import has_empty_operand
from smelt.operators.onnxruntime.partial_resize import is_partial, of_all_axes
from smelt.operators.onnxruntime.runtime_defects import DEFECTS, OF_SOURCE, is_wrong
from smelt.operators.special import error, trigonometric

DOMAIN = "smelt"
"""The domain of the functions."""

Values = Sequence["ir.Value | None"]

T = ir.DataType


def _where_by_logic(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build a Where of booleans from And, Or and Not."""
    test, yes, no = inputs
    return (b.op("Or", b.op("And", test, yes), b.op("And", b.op("Not", test), no)),)


def _on_type(op_type: str, to: ir.DataType, *, cast_back: bool) -> Body:
    """Return a body that runs the operator on the type ``to``.

    All inputs of the unsupported type are cast, which changes no value. With ``cast_back`` the
    first result is cast back.
    """

    def body(b: Builder, operands: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
        """Build the operator on operands cast to the supported type."""
        typed_operand = operands[typed_input(op_type)]
        assert typed_operand is not None
        assert typed_operand.dtype is not None
        dtype = typed_operand.dtype
        inputs = [_cast(b, x, to) if x is not None and x.dtype == dtype else x for x in operands]
        options: dict[str, Any] = dict(attributes)
        first, *others = b.ops(op_type, *inputs, outputs=OUTPUTS.get(op_type, 1), **options)
        result = _cast(b, first, dtype) if cast_back else first
        return (result, *others)

    return body


def _as_double(op_type: str) -> Body:
    """Return a body of ReduceMax or ReduceMin of uint32, which computes in double.

    ONNX Runtime compares only halves of int64. For no elements the result is infinite as a double;
    it is clipped to the limit of the type.
    """

    def body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
        """Build the reduction of doubles, clipped and cast to uint32."""
        x, *axes = inputs
        assert x is not None
        options: dict[str, Any] = dict(attributes)
        reduced = b.op(op_type, _cast(b, x, T.DOUBLE), *axes, **options)
        limits = (b.const_like(limit, reduced) for limit in (0, 2**32 - 1))
        return (_cast(b, b.op("Clip", reduced, *limits), T.UINT32),)

    return body


def _cast(b: Builder, x: ir.Value, to: ir.DataType) -> ir.Value:
    """Build ``x`` cast to ``to``."""
    return b.op("Cast", x, to=int(to))


OUTPUTS = {"TopK": 2}
"""Number of results of operators with more than one."""

COMPUTED_AS: Mapping[str, Mapping[ir.DataType, ir.DataType]] = {
    "BitShift": {T.UINT16: T.UINT32},
    "Clip": {T.INT16: T.INT32, T.UINT16: T.INT32},
    "DepthToSpace": {
        T.BOOL: T.UINT8,
        **dict.fromkeys((T.INT16, T.UINT16), T.FLOAT),
        **dict.fromkeys((T.INT32, T.UINT32), T.DOUBLE),
    },
    "Max": {T.INT16: T.INT32, T.UINT16: T.INT32},
    "Min": {T.INT16: T.INT32, T.UINT16: T.INT32},
    "Pad": {T.INT16: T.INT32, T.UINT16: T.INT32},
    "SpaceToDepth": {
        T.BOOL: T.UINT8,
        **dict.fromkeys((T.INT16, T.UINT16), T.FLOAT),
        **dict.fromkeys((T.INT32, T.UINT32), T.DOUBLE),
    },
    "TopK": {T.UINT16: T.INT32, T.UINT32: T.INT64},
    "Trilu": {
        **dict.fromkeys((T.INT8, T.UINT8, T.INT16, T.UINT16), T.INT32),
        **dict.fromkeys((T.UINT32, T.UINT64), T.INT64),
    },
    "Where": {T.INT16: T.INT32, T.UINT16: T.INT32, T.UINT64: T.INT64},
}
"""Operator to types without a kernel, each with a wider type to compute in; results are cast back.
"""

OPERANDS_AS: Mapping[str, Mapping[ir.DataType, ir.DataType]] = {
    "ArgMax": {T.INT16: T.INT32, T.UINT16: T.INT32, T.UINT32: T.INT64},
    "ArgMin": {T.INT16: T.INT32, T.UINT16: T.INT32, T.UINT32: T.INT64},
    "NonZero": dict.fromkeys((T.DOUBLE, T.INT8, T.INT16, T.UINT16, T.UINT32, T.UINT64), T.BOOL),
    "Pow": {
        **dict.fromkeys((T.INT8, T.UINT8, T.INT16, T.UINT16), T.INT32),
        T.UINT32: T.INT64,
    },
}
"""Operators whose operands are cast, but whose results keep their type: indices, or powers."""

DOUBLES = (*trigonometric.OPERATORS, *error.OPERATORS[:1])
"""Operators with a formula for doubles, which runtimes compute in single precision only."""


FORMULAS = (
    *("Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "PRelu", "Selu"),
    *("Softplus", "Softsign", "ThresholdedRelu"),
)
"""Elementwise operators whose formula is built for doubles."""


def _by_formula(name: str) -> Body:
    """Return a body that builds the formula of an elementwise operator."""
    formula = ROWS_OF_ELEMENTS[name].formula
    assert formula is not None

    def body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
        """Build the formula with the attributes of the node and their defaults."""
        opset = b.model.opset_imports.get("", 1)
        names = attribute_names(name, opset)
        defaults = {attribute: default_attribute(name, attribute, opset) for attribute in names}
        values = defaults | dict(attributes)
        m = Nodes(b)
        operands = [m.tensor(value) for value in inputs if value is not None]
        result: Tensor = formula(m, *operands, **values)
        return (result.value,)

    return body


def _rows() -> Iterator[tuple[tuple[str, ir.DataType], Body]]:
    """Yield the rows of ``GAPS``: first operators computed on another type, then formulas."""
    for table, cast_back in ((COMPUTED_AS, True), (OPERANDS_AS, False)):
        for op_type, types in table.items():
            for dtype, supported in types.items():
                yield (op_type, dtype), _on_type(op_type, supported, cast_back=cast_back)
    for operator in DOUBLES:
        assert operator.body is not None
        yield (operator.name, T.DOUBLE), operator.body
    for name in FORMULAS:
        yield (name, T.DOUBLE), _by_formula(name)
    for dtype in (T.INT32, T.INT64, T.UINT32, T.UINT64):
        yield ("PRelu", dtype), _by_formula("PRelu")
    for op_type in ("ReduceMax", "ReduceMin"):
        yield (op_type, T.UINT32), _as_double(op_type)
    yield ("Where", T.BOOL), _where_by_logic


GAPS: Mapping[tuple[str, ir.DataType], Body] = dict(_rows())
"""(Operator, element type) that ONNX Runtime lacks, to a body; `tests/operators` compares the table
with the installed runtime."""

ROWS = frozenset(op_type for op_type, _ in (*GAPS, *DEFECTS)) | {"Einsum", "Resize"}


def typed_input(op_type: str) -> int:
    """Return the input whose element type decides whether the runtime lacks the operator."""
    return 1 if op_type in ("Where", "Pow") else 0


def replacement_for(
    node: ir.Node, types: ElementTypes, *, of_source: bool = True
) -> Definition | None:
    """Return the definition that replaces ``node`` for ONNX Runtime; None to keep the node.

    Without ``of_source``, nodes that ``note_source`` has marked are kept although the runtime
    computes them wrong. Nodes of unknown element type are kept, too. So are nodes with an attribute
    that refers to an attribute of the enclosing function.
    """
    if node.domain or node.op_type not in ROWS:
        return None
    node_attributes = list(node.attributes.values())
    value = node.inputs[typed_input(node.op_type)]
    dtype = None if value is None else types.of(value)
    if dtype is None or any(attribute.is_ref() for attribute in node_attributes):
        return None
    key = node.op_type, dtype
    body = GAPS.get(key)
    if (of_source or OF_SOURCE not in node.meta) and is_wrong(node, dtype):
        body = DEFECTS[key]
    if has_empty_operand(node):
        body = empty_einsum.zeros
    if is_partial(node):
        body = of_all_axes
    if body is None:
        return None
    return Definition(
        domain=DOMAIN,
        name=node.op_type,
        inputs=tuple(f"x{i}{'' if x is not None else '?'}" for i, x in enumerate(node.inputs)),
        outputs=tuple(f"y{i}" for i in range(len(node.outputs))),
        attributes=tuple(Attribute(a.name, a.type, a.value) for a in node_attributes),
        body=body,
        any_rank=True,
    )


def unreplaced_defects(model: ir.Model) -> list[ir.Node]:
    """Return the nodes that stay although ONNX Runtime may compute them wrong.

    These are nodes of the model as it was loaded, which ``note_source`` has marked.
    """
    types = ElementTypes(opset_of(model))
    nodes = []
    for node in scope.nodes(model):
        value = node.inputs[0] if OF_SOURCE in node.meta and node.inputs else None
        dtype = None if value is None else types.of(value)
        if dtype is not None and is_wrong(node, dtype):
            nodes.append(node)
    return nodes
