"""Matrix products by simpler ones."""

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


ROWS: Mapping[str, tuple[Row, ...]] = {"Gemm": (Row("MatMul Transpose Mul Add", _gemm),)}
