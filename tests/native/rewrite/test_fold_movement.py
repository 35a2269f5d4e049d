"""Constants that are expanded are never in the arena; strided kernels read what they repeat."""

from __future__ import annotations

import pytest
from c_library import Library, ops, random_inputs


def _filled(value: str, shape: str, body: str, head: str) -> str:
    sizes = f"s = Constant<value_ints = [{shape}]>()"
    return f"g ({head} {{ {sizes} f = ConstantOfShape<value = {value}>(s) {body} }}"


SAME = "float[2,3,4] x) => (float[2,3,4] y)"
GRAPHS = {
    "added": _filled("float[1] {0.5}", "2, 3, 4", "y = Add(x, f)", SAME),
    "alone in a row": _filled("float[1] {0.5}", "4", "y = Mul(x, f)", SAME),
    "integers": _filled("int32[1] {7}", "3", "y = Sub(f, x)", "int32[2,3] x) => (int32[2,3] y)"),
    "sixteen bits": _filled(
        "float16[1] {15872}", "2, 3", "y = Add(x, f)", "float16[2,3] x) => (float16[2,3] y)"
    ),
    "chosen": _filled(
        "bool[1] {1}", "3", "z = Neg(x) y = Where(f, x, z)", "float[2,3] x) => (float[2,3] y)"
    ),
    "concat": _filled(
        "float[1] {2}", "2, 5", "y = Concat<axis = 1>(f, x)", "float[2,3] x) => (float[2,8] y)"
    ),
    "transposed": _filled(
        "float[1] {3}", "3, 1", "t = Transpose(f) y = Add(x, t)", "float[2,3] x) => (float[2,3] y)"
    ),
    "multiplied": _filled(
        "float[1] {0.25}", "3, 5", "y = MatMul(x, f)", "float[2,3] x) => (float[2,5] y)"
    ),
    "convolved": _filled(
        "float[1] {0.1}", "4, 3, 2, 2", "y = Conv(x, f)", "float[1,3,5,5] x) => (float[1,4,4,4] y)"
    ),
    "returned": _filled(
        "float[1] {9}",
        "50",
        "y = Neg(x) z = Identity(f)",
        "float[2] x) => (float[2] y, float[50] z)",
    ),
    "a row repeated": (
        "g (float[3,2,4] x, float[1,4] w) => (float[3,2,4] y) { s = Constant<value_ints = "
        "[3, 2, 4]>() e = Expand(w, s) y = Add(x, e) }"
    ),
    "nothing": _filled(
        "float[1] {1}", "0, 3", "y = Concat<axis = 0>(x, f)", "float[2,3] x) => (float[2,3] y)"
    ),
}
DENSE = {"multiplied", "convolved"}
"""Those whose kernels ask for every element."""


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(GRAPHS, constant="w")


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_onnx_runtime(library: Library, name: str) -> None:
    library.check(name, random_inputs(library.models[name].source), rtol=1e-6, atol=1e-6)
    artifact = library.models[name].artifact
    assert ("Expand" in ops(artifact)) == (name == "returned")
    assert not any("f" in row.value.split(", ") for row in artifact.plan.memory.rows())
    if name not in DENSE:
        assert artifact.plan.facts["weights_bytes"] <= 16, "what is repeated is there once"
