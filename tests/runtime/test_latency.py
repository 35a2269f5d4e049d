"""Latency is measured for all models in one run."""

import numpy as np
import onnx_ir as ir

from smelt.runtime.latency import measure_latency


def test_one_median_a_model_and_the_larger_model_is_slower():
    header = '<ir_version: 10, opset_import: ["" : 20]>\n'
    small = ir.from_onnx_text(
        header + "g (float[64,64] x) => (float[64,64] y) { y = MatMul(x, x) }"
    )
    body = " ".join(f"x{i + 1} = MatMul(x{i}, x{i})" for i in range(40))
    large = ir.from_onnx_text(header + f"g (float[64,64] x0) => (float[64,64] x40) {{ {body} }}")
    quick, slow = measure_latency([small, large], [np.zeros((64, 64), np.float32)], rounds=9)
    assert 0 < quick < slow
