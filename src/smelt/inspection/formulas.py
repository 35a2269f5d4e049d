"""Formulas for the multiply-adds and other operations of a node: two tables by operator.

A multiply-add (MAC) of a product counts as two FLOPs; any other multiplication, addition,
comparison or function of an element as one. So a network of 4.1 GMACs has 8.2 GFLOPs. Moving data
counts as none. A formula returns None if it needs an unknown shape; operators in neither table are
reported as not counted. ``docs/inspect.md`` has the tables in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

from smelt.inspection.polynomial import ONCE, ZERO, Polynomial, elements
from smelt.operators.elementwise import ELEMENTWISE

Formula = Callable[[ir.Node], Polynomial | None]


def _input(node: ir.Node, index: int) -> ir.Value | None:
    """Return input ``index`` of ``node``, None if it is absent."""
    return node.inputs[index] if index < len(node.inputs) else None


def _dims(value: ir.Value | None, begin: int, end: int | None = None) -> Polynomial | None:
    """Return the product of the dims of ``value`` from ``begin`` to ``end``; None if unknown."""
    if value is None or value.shape is None:
        return None
    return Polynomial.of(value.shape.dims[begin:end])


def _out(node: ir.Node) -> Polynomial | None:
    """Return the number of elements of the first output."""
    return elements(node.outputs[0]) if node.outputs else None


def _times(*factors: Polynomial | int | None) -> Polynomial | None:
    """Return the product of ``factors``; None if one is unknown."""
    product, number = ONCE, 1
    for factor in factors:
        if factor is None:
            return None
        if isinstance(factor, int):
            number *= factor
        else:
            product = factor if product is ONCE else product * factor
    return product * number


def _sum(*terms: Polynomial | None) -> Polynomial | None:
    """Return the sum of ``terms``; None if one is unknown."""
    total_terms = ZERO
    for term in terms:
        if term is None:
            return None
        total_terms = total_terms + term
    return total_terms


def _bias(index: int) -> Formula:
    """Return a formula: one addition for each output element, if input ``index`` is present."""
    return lambda node: _out(node) if _input(node, index) is not None else ZERO


def _matmul(node: ir.Node) -> Polynomial | None:
    """Count one MAC for each output element and element of the inner dim."""
    return _times(_out(node), _dims(_input(node, 0), -1))


def _gemm(node: ir.Node) -> Polynomial | None:
    """Count one MAC for each output element and element of the inner dim.

    The inner dim is the last one of A, or the first with ``transA``.
    """
    transposed = node.attributes.get_int("transA", 0)
    depth = _dims(_input(node, 0), 0, 1) if transposed else _dims(_input(node, 0), 1, 2)
    return _times(_out(node), depth)


def _conv(weight: int) -> Formula:
    """Return a formula: per output element, one MAC for each weight of its output channel.

    ``weight`` is the number of the input that holds the weights, ``[M, C/group, kernel...]``.
    """
    return lambda node: _times(_out(node), _dims(_input(node, weight), 1))


def _conv_transpose(node: ir.Node) -> Polynomial | None:
    """Count per input element one MAC for each weight of its input channel.

    The weights are ``[C, M/group, kernel...]``.
    """
    return _times(elements(_input(node, 0)), _dims(_input(node, 1), 1))


def _recurrent(node: ir.Node) -> Polynomial | None:
    """Count the products with both matrices at each step; other work of a step is negligible."""
    steps = _dims(_input(node, 0), 0, 2)
    return _times(steps, _sum(elements(_input(node, 1)), elements(_input(node, 2))))


def _keys(node: ir.Node) -> Polynomial | None:
    """Return the number of keys that each query of an Attention is compared with: new and past
    keys.
    """
    key, past = _input(node, 1), _input(node, 4)
    if key is None or key.shape is None:
        return None
    keys = _dims(key, 2, 3) if len(key.shape) == 4 else _dims(key, 1, 2)
    return keys if past is None else _sum(keys, _dims(past, 2, 3))


def _attention(node: ir.Node) -> Polynomial | None:
    """Count the scores of each query with each key, then the weighted sum of values."""
    return _times(_sum(elements(_input(node, 0)), _out(node)), _keys(node))


def _scores(node: ir.Node) -> Polynomial | None:
    """Count the Softmax of an Attention over its scores: 5 operations for each score.

    The queries are B,H,S,D, or B,S,H*D with the head count as an attribute.
    """
    query = _input(node, 0)
    if query is None or query.shape is None:
        return None
    if len(query.shape) == 4:
        return _times(5, _dims(query, 0, 3), _keys(node))
    heads = node.attributes.get_int("q_num_heads", 1)
    return _times(5, heads, _dims(query, 0, 2), _keys(node))


def _einsum(node: ir.Node) -> Polynomial | None:
    """Count, for each combination of all indices, one MAC per operand beyond the first, at least
    one.
    """
    equation = node.attributes.get_string("equation", "").replace(" ", "")
    terms = equation.partition("->")[0].split(",")
    sizes: dict[str, Polynomial] = {}
    for term, value in zip(terms, node.inputs, strict=False):
        if value is None or value.shape is None or len(term) != len(value.shape):
            return None
        sizes |= {name: Polynomial.of([d]) for name, d in zip(term, value.shape.dims, strict=True)}
    return _times(max(len(terms) - 1, 1), *sizes.values())


def _window(per_element: int) -> Formula:
    """Return a formula: ``per_element`` operations for each output element and window element."""

    def formula(node: ir.Node) -> Polynomial | None:
        """Return the operations of one node."""
        return _times(
            per_element, _out(node), Polynomial.of(node.attributes.get_ints("kernel_shape", ()))
        )

    return formula


def _resize(node: ir.Node) -> Polynomial | None:
    """Count a multiplication and an addition for each source element that an output
    element reads.
    """
    mode = node.attributes.get_string("mode", "nearest")
    source, result = _input(node, 0), node.outputs[0]
    if mode == "nearest":
        return ZERO
    if source is None or source.shape is None or result.shape is None:
        return None
    pairs = zip(source.shape.dims, result.shape.dims, strict=False)
    resized = sum(before != after for before, after in pairs)
    return _times(2 * (4 if mode == "cubic" else 2) ** resized, _out(node))


def _each_out(per_element: int) -> Formula:
    """Return a formula: ``per_element`` operations for each output element."""
    return lambda node: _times(per_element, _out(node))


def _each_in(per_element: int) -> Formula:
    """Return a formula: ``per_element`` operations for each element of the first input."""
    return lambda node: _times(per_element, elements(_input(node, 0)))


def _variadic(less: int) -> Formula:
    """Return a formula: for each output element, ``len(inputs) - less`` operations.

    A sum of n inputs takes n - 1 operations; a mean divides, too, and takes n.
    """
    return lambda node: _times(max(len(node.inputs) - less, 0), _out(node))


def _all(formula: Formula, *names: str) -> dict[str, Formula]:
    """Return ``formula`` for each of ``names``."""
    return dict.fromkeys(names, formula)


MOVED = (
    *("Cast", "CastLike", "Concat", "ConstantOfShape", "DepthToSpace", "Expand", "EyeLike"),
    *("Gather", "GatherElements", "GatherND", "OneHot", "Pad", "Range", "ReverseSequence"),
    *("Scatter", "ScatterElements", "ScatterND", "Slice", "SpaceToDepth", "Split", "Tile"),
    *("Transpose", "Trilu", "Compress", "NonZero", "TensorScatter", "Upsample"),
)
"""Operators that only move data."""

VIEWS = (
    *("Constant", "Dropout", "Flatten", "Identity", "Reshape", "Shape", "Size", "Squeeze"),
    *("Unsqueeze", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt"),
    *("SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength"),
)
"""Operators that a runtime can compute without moving data."""

_FOLDED = ("Sum", "Max", "Min", "Mean")
"""Operators that combine any number of tensors, two at a time."""

_RANDOM = ("Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")

PRODUCTS: Mapping[str, Formula] = {
    **_all(_matmul, "MatMul", "MatMulInteger", "QLinearMatMul"),
    "Gemm": _gemm,
    **_all(_conv(1), "Conv", "ConvInteger", "DeformConv"),
    "QLinearConv": _conv(3),
    "ConvTranspose": _conv_transpose,
    **_all(_recurrent, "RNN", "GRU", "LSTM"),
    "Attention": _attention,
    "Einsum": _einsum,
}
"""ONNX operator to the formula of its multiply-adds."""

OTHERS: Mapping[str, Formula] = {
    **_all(lambda _: ZERO, *MOVED, *VIEWS),
    **_all(_bias(2), "Gemm", "Conv", "ConvTranspose"),
    "DeformConv": _bias(3),
    "QLinearConv": _bias(8),
    "Attention": _scores,
    **_all(_window(1), "MaxPool", "AveragePool"),
    "LpPool": _window(2),
    **_all(_each_in(1), "GlobalAveragePool", "GlobalMaxPool"),
    "GlobalLpPool": _each_in(2),
    **_all(_each_out(1), *ELEMENTWISE.difference(_FOLDED, MOVED, VIEWS), *_RANDOM),
    **_all(_variadic(1), *_FOLDED),
    "Mean": _variadic(0),
    **_all(_each_out(2), "BatchNormalization", "QuantizeLinear", "DequantizeLinear"),
    "DynamicQuantizeLinear": _each_out(4),
    **_all(_each_out(7), "LayerNormalization", "InstanceNormalization", "GroupNormalization"),
    **_all(_each_out(4), "RMSNormalization", "MeanVarianceNormalization"),
    "LpNormalization": _each_out(3),
    **_all(_each_out(5), "Softmax", "LogSoftmax"),
    "Hardmax": _each_out(1),
    "RotaryEmbedding": _each_out(3),
    "Resize": _resize,
    **_all(_each_in(1), "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"),
    **_all(_each_in(2), "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum"),
    "ReduceLogSumExp": _each_in(3),
    **_all(_each_in(1), "ArgMax", "ArgMin", "CumSum", "CumProd"),
}
"""ONNX operator to the formula of its other FLOPs."""
