"""Which bodies of reductions and scatters are one operator, of the arguments in which order."""

from __future__ import annotations

import pytest
from jax.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

from smelt.frontends.stablehlo.bodies import only_operator

MODULE = """
func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
  %y = "stablehlo.reduce"(%x, %z) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    BODY
  }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
"""
T = "tensor<f32>"
RETURN = '"stablehlo.return"(%{}) : (tensor<f32>) -> ()'
BODIES = {
    f"%c = stablehlo.add %a, %b : {T} {RETURN.format('c')}": "stablehlo.add",
    f"%c = stablehlo.add %b, %a : {T} {RETURN.format('c')}": "stablehlo.add",
    f"%c = stablehlo.subtract %a, %b : {T} {RETURN.format('c')}": "stablehlo.subtract",
    f"%c = stablehlo.subtract %b, %a : {T} {RETURN.format('c')}": "",
    f"%c = stablehlo.multiply %a, %a : {T} {RETURN.format('c')}": "",
    f"%c = stablehlo.add %a, %b : {T} {RETURN.format('a')}": "",
    f"%c = stablehlo.add %a, %b : {T} %d = stablehlo.add %c, %b : {T} {RETURN.format('d')}": "",
    RETURN.format("b"): "stablehlo.return",
    RETURN.format("a"): "",
}
"""The operator of each body; empty where a body is not one operator of both arguments."""


@pytest.mark.parametrize("body", BODIES)
def test_a_body_is_one_operator(body: str) -> None:
    with make_ir_context():
        module = ir.Module.parse(MODULE.replace("BODY", body))
        reduce = module.body.operations[0].regions[0].blocks[0].operations[0]
        assert only_operator(reduce.regions[0]) == BODIES[body]
