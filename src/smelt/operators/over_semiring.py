"""A model of sums and products, computed over another semiring.

    before   y = MatMul(a, b)   z = Add(y, c)                   shortest paths by min_plus
    after    y = smelt.Einsum<semiring="min_plus">(a, b)   z = Min(y, c)

Operators that move elements stay. Constants are elements of the semiring, unchanged: 0 and 1 in a
model are zero and one of the semiring only if the semiring's are 0 and 1.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import TypeAlias

import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.opsets.raise_opset import raise_opset
from smelt.ir.rewrite import Rewriter
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.dot_general import reduced
from smelt.operators.inputs import present
from smelt.operators.semiring import Semiring, semiring_of
from smelt.operators.sliced_einsum import sum_of

MOVES = frozenset(
    {
        *("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Tile", "Identity"),
        *("Slice", "Split", "Concat", "Gather", "GatherElements", "GatherND", "Constant"),
    }
)
"""Operators that only move elements, so they are right over any semiring."""

OPSET = 18
"""From this opset on, all reductions take their axes as an input, as the code here writes them."""

Meaning: TypeAlias = Callable[[Builder, ir.Node, Semiring], ir.Value]


def over_semiring(model: ir.Model, semiring: str | Semiring) -> ir.Model:
    """Return a copy of ``model`` in which Add is the plus of ``semiring`` and Mul its times.

    ReduceSum, MatMul, Einsum and ``smelt.DotGeneral`` sum and multiply in the semiring, too.
    ``semiring`` is a name or a ``Semiring``, as for ``compile_einsum``. Values must have known
    dtypes and shapes. Call this before the model is optimized, because rewrites such as x * 0 = 0
    hold for numbers only. A model of an older opset is raised to 18.

    Raises UsageError E657 if ``semiring`` is not a semiring, and an ErrorList of Unsupported E659
    for other operators and for element types on which the semiring is not defined.
    """
    algebra, copy = semiring_of(semiring), model.clone()
    shapes = ShapeInference(copy)
    shapes.infer_model()
    refusals = [_refusal(node, algebra) for node in copy.graph]
    refused = [error for error in refusals if error is not None]
    if refused:
        raise ErrorList(refused)
    if copy.opset_imports.get("", OPSET) < OPSET:
        raise_opset(copy, OPSET)
        shapes = ShapeInference(copy)
        shapes.infer_model()
    rewriter = Rewriter(copy, shapes, Constants())
    for node in list(copy.graph):
        meaning = MEANINGS.get((node.domain, node.op_type))
        if meaning is not None:
            result = meaning(rewriter.builder(node, [node], "over_semiring"), node, algebra)
            rewriter.replace(node, [result], trust_shape=True)
    rewriter.flush()
    return copy


def _refusal(node: ir.Node, semiring: Semiring) -> Unsupported | None:
    """Return the error E659 for a ``node`` that cannot be computed over ``semiring``, None for
    others."""
    at = f"node {node.name!r}"
    key = (node.domain, node.op_type)
    if key not in MEANINGS:
        if not node.domain and node.op_type in MOVES:
            return None
        names = sorted({name for _, name in MEANINGS} | MOVES)
        why = "a semiring defines only sums and products; moving elements needs neither"
        fix = f"use only {', '.join(names)}"
        problem = f"{node.op_type} has no meaning over the semiring {semiring}"
        return Unsupported("E659", problem, at=at, why=why, fix=fix)
    dtype = node.outputs[0].dtype
    if dtype is None or not semiring.supports(dtype.numpy()):
        kind = "unknown elements" if dtype is None else dtype.name.lower()
        problem = f"the semiring {semiring} is not defined on {kind}"
        why = "each semiring lists the element types that its operations support"
        return Unsupported("E659", problem, at=at, why=why, fix="cast the operands to one of them")
    current = node.attributes.get_string("semiring", "sum_product")
    if current != "sum_product":
        problem = f"{node.op_type} is computed over the semiring {current} already"
        why = "smelt converts only contractions over sum_product to another semiring"
        return Unsupported(
            "E659",
            problem,
            at=at,
            why=why,
            fix="apply the semiring to the model before that rewrite",
        )
    if node.op_type == "ReduceSum" and len(node.inputs) > 1 and _axes(node) is None:
        problem = "the axes of a ReduceSum are not constant"
        why = "a contraction has to name the axes that it sums over"
        return Unsupported("E659", problem, at=at, why=why, fix="make the axes an initializer")
    return None


def _plus(b: Builder, node: ir.Node, semiring: Semiring) -> ir.Value:
    """Build the sum of all operands."""
    return reduce(partial(_sum, b, semiring), present(node.inputs))


def _sum(b: Builder, semiring: Semiring, x: ir.Value, y: ir.Value) -> ir.Value:
    """Build the sum of ``x`` and ``y``, expanded first if ``sum_of`` needs equal shapes."""
    if semiring.plus == "LogAddExp" and x.shape != y.shape:
        x = b.op("Expand", x, b.op("Shape", y))
        y = b.op("Expand", y, b.op("Shape", x))
    return sum_of(b, x, y, semiring)


def _times(b: Builder, node: ir.Node, semiring: Semiring) -> ir.Value:
    """Build the product of both operands."""
    return b.op(semiring.times, *present(node.inputs))


def _reduced(b: Builder, node: ir.Node, semiring: Semiring) -> ir.Value:
    """Build the reduction of ``node`` over ``semiring``."""
    x, axes = present(node.inputs)[0], _axes(node)
    keeps_all = node.attributes.get_int("noop_with_empty_axes", 0)
    if not axes:
        axes = () if keeps_all else tuple(range(_rank(x)))
    sorted_axes = tuple(sorted(axis % _rank(x) for axis in axes))
    total = reduced(b, x, sorted_axes, semiring)
    if not sorted_axes or not node.attributes.get_int("keepdims", 1):
        return total
    return b.op("Unsqueeze", total, b.const_i64(sorted_axes))


def _axes(node: ir.Node) -> tuple[int, ...] | None:
    """Return the axes of a ReduceSum; None if it has none or they are not constant."""
    if "axes" in node.attributes:
        return tuple(node.attributes.get_ints("axes"))
    array = Constants().get(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if array is None else tuple(int(axis) for axis in array)


def _matmul(b: Builder, node: ir.Node, semiring: Semiring) -> ir.Value:
    """Build an Einsum, after batch dims of size 1 that broadcast are removed."""
    x, y = present(node.inputs)
    x_labels, y_labels = _labels(_rank(x), "mk"), _labels(_rank(y), "kn")
    batch = max(x_labels[:-2], y_labels[:-2], key=len)
    rows, columns = ("m" if _rank(x) > 1 else ""), ("n" if _rank(y) > 1 else "")
    out = batch + rows + columns
    for label in sorted(set(x_labels[:-2]) & set(y_labels[:-2])):
        x_size, y_size = _size(x, x_labels, label), _size(y, y_labels, label)
        if x_size == 1 and y_size != 1:
            x, x_labels = _without_dim(b, x, x_labels, label)
        elif y_size == 1 and x_size != 1:
            y, y_labels = _without_dim(b, y, y_labels, label)
    equation = f"{x_labels},{y_labels}->{out}"
    return b.op("Einsum", x, y, domain="smelt", equation=equation, semiring=str(semiring))


def _labels(rank: int, matrix: str) -> str:
    """Return labels for the dims; batch dims count from the back, so that equal labels are
    aligned."""
    return string.ascii_uppercase[: rank - 2][::-1] + matrix if rank > 1 else "k"


def _size(value: ir.Value, labels: str, label: str) -> object:
    """Return the size of the dim called ``label``."""
    assert value.shape is not None
    return value.shape[labels.index(label)]


def _without_dim(b: Builder, value: ir.Value, labels: str, label: str) -> tuple[ir.Value, str]:
    """Build ``value`` without the dim of size 1 called ``label``, and return its labels."""
    squeezed = b.op("Squeeze", value, b.const_i64([labels.index(label)]))
    return squeezed, labels.replace(label, "")


def _einsum(b: Builder, node: ir.Node, semiring: Semiring) -> ir.Value:
    """Build the Einsum over the semiring."""
    equation = node.attributes["equation"].as_string()
    return b.op(
        "Einsum", *present(node.inputs), domain="smelt", equation=equation, semiring=str(semiring)
    )


def _with_semiring(b: Builder, node: ir.Node, semiring: Semiring) -> ir.Value:
    """Build the same operator, which has the semiring as an attribute."""
    other_attributes = [item for name, item in node.attributes.items() if name != "semiring"]
    attributes = [*other_attributes, ir.AttrString("semiring", str(semiring))]
    return b.add(ir.Node(node.domain, node.op_type, node.inputs, attributes))[0]


def _rank(value: ir.Value) -> int:
    """Return the rank of ``value``, whose shape is known."""
    assert value.shape is not None  # over_semiring requires known shapes
    return len(value.shape)


MEANINGS: Mapping[tuple[str, str], Meaning] = {
    ("", "Add"): _plus,
    ("", "Sum"): _plus,
    ("", "Mul"): _times,
    ("", "ReduceSum"): _reduced,
    ("", "MatMul"): _matmul,
    ("", "Einsum"): _einsum,
    ("smelt", "DotGeneral"): _with_semiring,
    ("smelt", "Einsum"): _with_semiring,
}
