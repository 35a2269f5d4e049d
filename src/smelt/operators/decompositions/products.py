"""Decompositions of Gemm, and of convolutions over one axis."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from smelt.operators.decompositions.row import Call, Row


def _gemm(c: Call) -> ir.Value:
    """Return ``alpha * A @ B + beta * C``."""
    a, b = (
        c.op("Transpose", value, perm=[1, 0]) if c.attributes[flag] else value
        for value, flag in ((c[0], "transA"), (c[1], "transB"))
    )
    result = c.op("MatMul", a, b)
    if c.attributes["alpha"] != 1:
        result = c.op("Mul", result, float(c.attributes["alpha"]))
    bias = c.get(2)
    if bias is None:
        return result
    if c.attributes["beta"] != 1:
        bias = c.op("Mul", bias, float(c.attributes["beta"]))
    return c.op("Add", result, bias)


def _of_images(c: Call) -> ir.Value | None:
    """Return a convolution over one axis as a convolution of images with one row; None for others.

    Its attributes get a number for the axis of rows: 1, and pads of 0.
    """
    if c.rank() != 3 or c.attributes["auto_pad"] not in ("NOTSET", "VALID"):
        return None
    row = c.b.const_i64([2])
    lead = {"strides": 1, "dilations": 1, "kernel_shape": 1}
    given = {each.name: each.value for each in c.node.attributes.values()}
    wider = {name: [lead[name], *given[name]] for name in given.keys() & lead.keys()}
    if "pads" in given:
        wider["pads"] = [0, given["pads"][0], 0, given["pads"][1]]
    image, filters = (c.b.op("Unsqueeze", value, row) for value in (c[0], c[1]))
    result = c.b.op("Conv", image, filters, c.get(2), **{**given, **wider})
    return c.b.op("Squeeze", result, row)


ROWS: Mapping[str, tuple[Row, ...]] = {
    "Conv": (Row("Unsqueeze Conv Squeeze", _of_images),),
    "Gemm": (Row("MatMul Transpose Mul Add", _gemm),),
}
