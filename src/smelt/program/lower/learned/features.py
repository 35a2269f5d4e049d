"""Lowers operators that prepare features for learned models, and that pick from their results."""

from __future__ import annotations

import math

import onnx_ir as ir

from smelt.program.instruction import Dim
from smelt.program.lower.arrays import Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers

ML = "ai.onnx.ml"


@lowers(f"{ML}::ArrayFeatureExtractor")
def array_feature_extractor(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a Gather along the last axis; a vector counts as one row."""
    m = Steps(cx)
    x, indices = m.array(node.inputs[0]), m.array(node.inputs[1])
    rows = x if len(x.shape) > 1 else x.reshape(1, *x.shape)
    flat = indices.reshape(_product(indices.shape))
    m.set_output(node.outputs[0], rows.gather(flat, len(rows.shape) - 1))


@lowers(f"{ML}::Binarizer")
def binarizer(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit 1 above the threshold, else 0."""
    m = Steps(cx)
    x = m.array(node.inputs[0])
    above = m.op("Greater", x, node.attributes.get_float("threshold", 0.0))
    m.set_output(node.outputs[0], above.cast(x.dtype))


@lowers(f"{ML}::Scaler")
def scaler(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit ``(x - offset) * scale``, with one number for all features or one for each."""
    m = Steps(cx)
    x = m.array(node.inputs[0]).cast(ir.DataType.FLOAT)
    offset, scale = (
        m.constant(node.attributes.get_floats(name, default), ir.DataType.FLOAT)
        for name, default in (("offset", (0.0,)), ("scale", (1.0,)))
    )
    m.set_output(node.outputs[0], (x - offset) * scale)


@lowers(f"{ML}::Normalizer")
def normalizer(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit each row divided by its maximum, its L1 or its L2 norm; rows of zeros unchanged."""
    m = Steps(cx)
    x = m.array(node.inputs[0]).cast(ir.DataType.FLOAT)
    if len(x.shape) not in (1, 2):
        raise cx.refuse("its features are not a matrix")
    last, norm = len(x.shape) - 1, node.attributes.get_string("norm", "MAX")
    if norm == "MAX":
        size = x.reduce("ReduceMax", last, keep=True)
    elif norm in ("L1", "L2"):
        size = x.reduce(f"Reduce{norm}", last, keep=True)
    else:
        raise cx.refuse(f"smelt does not lower the norm {norm}")
    m.set_output(node.outputs[0], m.op("Where", m.op("Equal", size, 0.0), x, x / size))


@lowers(f"{ML}::Imputer")
def imputer(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit x with one number, or one per feature, in place of the missing value."""
    m = Steps(cx)
    x, attributes = m.array(node.inputs[0]), node.attributes
    kind = "float" if x.dtype.is_floating_point() else "int64"
    values = attributes.get_floats if kind == "float" else attributes.get_ints
    imputed = m.constant(values(f"imputed_value_{kind}s", ()), x.dtype)
    if kind == "float":
        replaced_value: float = attributes.get_float("replaced_value_float", 0.0)
    else:
        replaced_value = attributes.get_int("replaced_value_int64", 0)
    missing = m.op("IsNaN", x) if math.isnan(replaced_value) else m.op("Equal", x, replaced_value)
    m.set_output(node.outputs[0], m.op("Where", missing, imputed, x))


@lowers(f"{ML}::ZipMap")
def zip_map(cx: ProgramBuilder, node: ir.Node) -> None:
    """Refuse the node, because dictionaries are no tensors."""
    raise cx.refuse(
        "it makes dictionaries of the scores",
        fix="--pipeline zip-map-to-tensor,default returns the scores as a tensor",
    )


def _product(shape: tuple[Dim, ...]) -> Dim:
    """Return the product of ``shape``, which may be symbolic."""
    result: Dim = 1
    for dim in shape:
        result = dim if result == 1 else result * dim
    return result
