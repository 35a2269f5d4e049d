"""Drop a QuantizeLinear that undoes a DequantizeLinear with the same parameters.

    before   q ─> DequantizeLinear(s, z) ─┬─> QuantizeLinear(s, z) ─> y        after   q ─> y
                                          └─> other readers keep the DequantizeLinear

Needs    (1) constant, positive, normal scales that are equal on both sides; also equal zero points
         (absent means 0), axis, block size and integer type; (2) a floating-point type that
         distinguishes all integers and holds the largest dequantized value.
Keeps    (1) pairs in the other order, which round; (2) int8 in bfloat16 and int16 in float16,
         which cannot distinguish all integers; (3) computed scales.
"""

from __future__ import annotations

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.quantize.quantization import Quantization
from smelt.passes.quantize.round_trip import round_trip_flaw

_dequantized = op("DequantizeLinear", var("x"), rest=True, name="dq", shared=True)


@rule(op("QuantizeLinear", _dequantized, rest=True), min_opset=10, same_shape=True)  # keeps 1
def quantize_of_dequantize(m: Match, b: Builder) -> Replacement:
    """Replace the pair by its integers if the round trip is proved to be exact."""
    dequantization, quantization = Quantization.of(m.node("dq")), Quantization.of(m.root)
    if dequantization is None or quantization is None:
        return Miss("the element types or parameters of the quantization are unknown")
    flaw = round_trip_flaw(dequantization, quantization, m.constants)  # needs 1, 2, keeps 2, 3
    return m["x"] if flaw is None else Miss(flaw)


dequantize_quantize_pair_elimination = rule_pass(
    "dequantize_quantize_pair_elimination",
    __doc__,
    [quantize_of_dequantize],
    exactness=EXACT,
    source="Core ML MIL: common::dequantize_quantize_pair_elimination",
)
