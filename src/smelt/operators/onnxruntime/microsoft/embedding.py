"""``EmbedLayerNormalization``, also with quantized tables: the sum of embeddings, and its norm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Arguments, Attributes, Computed, Result
from smelt.operators.inputs import filled, first, input_at, present
from smelt.operators.onnxruntime.microsoft.declared import Values, floats, ints, operator
from smelt.operators.onnxruntime.microsoft.quantized import dequantized

INT32 = ir.DataType.INT32
EPSILON = float(np.float32(1e-12))


def _infer(inputs: Values, table: ir.Value | None, dtype: ir.DataType | None) -> list[Result]:
    """Return the types: embedding [B, S, H], tokens per sequence [B], embedding sum [B, S, H]."""
    ids = first(inputs)
    if ids.shape is None or table is None or table.shape is None:
        return [Result(dtype, None), Result(INT32, None), Result(dtype, None)]
    shape = ir.Shape([*ids.shape.dims, table.shape[-1]])
    return [Result(dtype, shape), Result(INT32, ir.Shape(ids.shape.dims[:1])), Result(dtype, shape)]


def _embed(
    ids: np.ndarray,
    kinds: np.ndarray | None,
    tables: Sequence[np.ndarray | None],
    norm: Sequence[np.ndarray],
    mask: np.ndarray | None,
    places: np.ndarray | None,
    attributes: Attributes,
) -> Computed:
    """Return the layer norm of the summed embeddings, the lengths that the mask marks, and the
    sum."""
    words, positions = present(tables[:2])
    segments = tables[2]
    total = words[ids] + positions[np.arange(ids.shape[1]) if places is None else places]
    if kinds is not None and segments is not None:
        total = total + segments[kinds]
    centre = total - total.mean(-1, keepdims=True)
    spread = (centre**2).mean(-1, keepdims=True)
    result = centre / np.sqrt(spread + attributes["epsilon"]) * norm[0] + norm[1]
    lengths = np.zeros(len(ids)) if mask is None else (mask == 1).sum(-1)
    return result.astype(total.dtype), lengths.astype(np.int32), total


def _embed_body(
    b: Builder,
    ids: ir.Value,
    kinds: ir.Value | None,
    tables: Sequence[ir.Value | None],
    norm: Sequence[ir.Value | None],
    mask: ir.Value | None,
    places: ir.Value | None,
    attributes: Attributes,
) -> tuple[ir.Value, ...]:
    """Build the nodes for what ``_embed`` computes: norm, mask lengths and embedding sum."""
    words, positions, segments = tables
    if places is None:
        length = b.op("Gather", b.op("Shape", ids), b.const_i64(1), axis=0)
        places = b.op("Range", b.const_i64(0), length, b.const_i64(1))
    embeddings = b.op("Gather", words, ids, axis=0), b.op("Gather", positions, places, axis=0)
    total = b.op("Add", *embeddings)
    if kinds is not None and segments is not None:
        total = b.op("Add", total, b.op("Gather", segments, kinds, axis=0))
    epsilon = attributes["epsilon"]
    assert isinstance(epsilon, int | float)
    centre = b.op("Sub", total, b.mean(total, [-1]))
    spread = b.mean(b.op("Mul", centre, centre), [-1])
    root = b.op("Sqrt", b.op("Add", spread, b.const_like(epsilon, total)))
    result = b.op("Add", b.op("Mul", b.op("Div", centre, root), norm[0]), norm[1])
    return result, _count_ones(b, ids if mask is None else mask, mask is not None), total


def _count_ones(b: Builder, numbers: ir.Value, counted: bool) -> ir.Value:
    """Build the number of ones in each row; 0 unless ``counted``."""
    ones = b.op("Cast", b.op("Equal", numbers, b.const_like(1, numbers)), to=int(INT32))
    marks = ones if counted else b.op("Mul", ones, b.constant(np.int32(0)))
    return b.op("ReduceSum", marks, b.const_i64([1]), keepdims=0)


def _float_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return norm, mask lengths and embedding sum, from tables of floats."""
    ids, kinds, words, positions, segments, gamma, beta, mask, places = filled(inputs, 9)
    assert ids is not None
    assert gamma is not None
    assert beta is not None
    tables = words, positions, segments
    return _embed(ids, kinds, tables, (gamma, beta), mask, places, attributes)


def _float_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build norm, mask lengths and embedding sum, from tables of floats."""
    ids, kinds, words, positions, segments, gamma, beta, mask, places = filled(inputs, 9)
    assert ids is not None
    tables = words, positions, segments
    return _embed_body(b, ids, kinds, tables, (gamma, beta), mask, places, attributes)


def _infer_float(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the types; the result has the dtype of the word table."""
    table = input_at(inputs, 2)
    return _infer(inputs, table, None if table is None else table.dtype)


def _quantized_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return norm and mask lengths from quantized tables, computed in floats."""
    ids, kinds, *tables = inputs[:7]
    mask = inputs[7]
    assert ids is not None
    scaled_tables = zip(tables, inputs[8:13], inputs[13:18], strict=True)
    tables_of_floats = [
        None if quantized[0] is None else dequantized(*quantized) for quantized in scaled_tables
    ]
    *tables, gamma, beta = tables_of_floats
    assert gamma is not None
    assert beta is not None
    return _embed(ids, kinds, tables, (gamma, beta), mask, places=None, attributes=attributes)[:2]


def _quantized_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build norm and mask lengths from dequantized tables."""
    ids, kinds, *tables = inputs[:7]
    mask = inputs[7]
    assert ids is not None
    scaled_tables = zip(tables, inputs[8:13], inputs[13:18], strict=True)  # scales, zero points
    float_tables = [
        None if quantized[0] is None else b.op("DequantizeLinear", *quantized)
        for quantized in scaled_tables
    ]
    *embeddings, gamma, beta = float_tables
    norm = gamma, beta
    return _embed_body(b, ids, kinds, embeddings, norm, mask, places=None, attributes=attributes)[
        :2
    ]


def _infer_quantized(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the types of norm and mask lengths; the norm is float32."""
    words = input_at(inputs, 2)
    return _infer(inputs, words, ir.DataType.FLOAT)[:2]


_TABLES = ("word_embedding", "position_embedding", "segment_embedding", "gamma", "beta")
_OPTIONAL = {"segment_embedding": "?"}
OPERATORS = (
    operator(
        "EmbedLayerNormalization",
        "the layer norm of a sum of the embeddings of words, positions and segments",
        inputs=(
            *("input_ids", "segment_ids?", "word_embedding", "position_embedding"),
            *("segment_embedding?", "gamma", "beta", "mask?", "position_ids?"),
        ),
        outputs=("output", "mask_index?", "embedding_sum?"),
        attributes=(*floats(epsilon=EPSILON), *ints(mask_index_type=0)),
        least_ranks={"input_ids": 2, "word_embedding": 2},
        infer=_infer_float,
        reference=_float_reference,
        body=_float_body,
    ),
    operator(
        "QEmbedLayerNormalization",
        "EmbedLayerNormalization of tables of bytes",
        inputs=(
            *("input_ids", "segment_ids?", "word_embedding_quant", "position_embedding_quant"),
            *("segment_embedding?", "gamma_quant", "beta_quant", "mask?"),
            *(f"{name}_scale{_OPTIONAL.get(name, '')}" for name in _TABLES),
            *(f"{name}_zero_point{_OPTIONAL.get(name, '')}" for name in _TABLES),
        ),
        outputs=("layernorm_out", "mask_index_out"),
        attributes=floats(epsilon=EPSILON),
        least_ranks={"input_ids": 2, "word_embedding_quant": 2},
        infer=_infer_quantized,
        reference=_quantized_reference,
        body=_quantized_body,
    ),
)
