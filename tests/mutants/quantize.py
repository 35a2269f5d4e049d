"""Mistakes in passes on quantized graphs."""

from __future__ import annotations

from mutants.shown import Shown

SHOWN = [
    Shown(
        "dequantize-to-constexpr",
        "passes.quantize.dequantize_to_constexpr:_Folder.computed",
        'node.op_type != "QuantizeLinear"',
        'node.op_type == "QuantizeLinear"',
        "g () => (uint8[2] y) <float[2] w = {1, 2}, float s = {0}> { y = QuantizeLinear(w, s) }",
        opset=21,
    ),
    Shown(
        "int-op-canonicalization",
        "passes.quantize.int_op_canonicalization:_flaw_of_numbers",
        "flaw is not None",
        "False",
        "g (int8[4,2] x) => (int8[8] y) <float s = {0.1}, float r = {0.4}, int8 z = {0}, "
        "int64[1] t = {8}> { d = DequantizeLinear(x, s, z) m = Reshape(d, t) "
        "y = QuantizeLinear(m, r, z) }",
        opset=21,
    ),
    Shown(
        "nullify-redundant-quantization-zero-point",
        "passes.quantize.nullify_redundant_quantization_zero_point:_Nullifier.change_pair",
        "not all(map(self.undoes_middle, readers))",
        "all(map(self.undoes_middle, readers))",
        "g (float[4] x) => (float[4] y) <float s = {0.5}, uint8 z = {128}, uint8 "
        "w = {127}>{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, w) }",
        opset=21,
    ),
    Shown(
        "dequantize-quantize-pair-elimination",
        "passes.quantize.dequantize_quantize_pair_elimination:quantize_of_dequantize",
        'm["x"] if flaw is None else Miss(flaw)',
        'm["x"]',
        "g (int8[4,4] x) => (int8[4,4] y) <float s = {0.1}, float t = {0.4}, "
        "int8 z = {0}> { d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, t, "
        "z) }",
    ),
]
