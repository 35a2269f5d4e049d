"""Unsigned integers: packages compute them with digits, and have them as int32 with the same bits."""

from __future__ import annotations

import jax
import numpy as np
import onnx_ir as ir
import pytest
from targets.coreml.coremltools_check import loaded, needs_coremltools, problems
from targets.coreml.packages import computed, operations, types, written

import smelt
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.runtime.runner import open_runner
from smelt.targets.backend import emit_selected
from smelt.targets.base import Artifact
from smelt.targets.coreml import coreml

SEED = np.array([3000000000, 7], np.uint32)
MIXED = (
    "g (uint32[2,N] x, uint32[N] z) => (uint32[2,N] y, float[2,N] f, bool[2,N] c, uint32[2,N] s)"
    " <uint32 nine = {9}, uint32 seven = {7}, int64 n = {3}, bool t = {1}>"
    ' { p = Mul(x, z) q = BitwiseXor(p, x) r = BitShift <direction = "RIGHT"> (q, nine)'
    " f = Cast <to = 1> (r) c = Less(p, z) d = Div(q, seven) e = Where(c, d, r) y = Sub(e, x)"
    " s = Loop(n, t, x) <body = b (int64 i, bool g, uint32[2,N] v) => (bool h, uint32[2,N] w)"
    " { h = Identity(g) w = Add(v, z) }> }"
)


def drawn(**options: object) -> tuple[Artifact, ir.Model]:
    """The package of a function that draws exponential numbers and bits, and its ONNX model."""

    def draw(seed: jax.Array) -> tuple[jax.Array, ...]:
        key = jax.random.wrap_key_data(seed)
        return jax.random.bits(key, (300,)), jax.random.exponential(key, (300,))

    return smelt.compile(draw, "u32[2]", target=coreml, **options), smelt.trace(draw, "u32[2]")


def test_the_interface_has_the_same_bits() -> None:
    artifact = written("g (uint32[3] x) => (uint32[3] y) { y = BitwiseNot(x) }")
    assert artifact.report["unsigned"] == dict.fromkeys("xy", "int32 with the same bits")
    given = np.array([0, 5, 2**32 - 2], np.uint32)
    (found,) = artifact(given)
    assert (found.dtype, found.tolist()) == (np.uint32, [2**32 - 1, 2**32 - 6, 1])
    (bits,) = computed(artifact, given.view(np.int32))
    assert (bits.dtype, bits.tolist()) == (np.int32, [-1, -6, 1])
    (described,) = artifact.plan.steps.interfaces["main"].inputs
    assert described.description == "uint32 as int32 with the same bits"


def test_a_package_agrees_with_onnx_runtime() -> None:
    artifact = written(MIXED, dims={"N": (1, 5)})
    rng = np.random.default_rng(0)
    for size in (1, 5):
        given = [rng.integers(0, 2**32, shape).astype(np.uint32) for shape in ((2, size), (size,))]
        for found, expected in zip(
            artifact(*given), open_runner(text.parse(MIXED, 21))(*given), strict=True
        ):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_random_numbers_of_jax(precision: str) -> None:
    artifact, source = drawn(precision=precision)
    (bits, found), (same, expected) = artifact(SEED), open_runner(source)(SEED)
    np.testing.assert_array_equal(bits, same)
    np.testing.assert_allclose(found, expected, atol=1e-6 if precision == "fp32" else 4e-3)


def test_what_is_computed_from_random_bits_alone_stays_in_float32() -> None:
    model = (
        "g (uint32[3] x, float[3] a) => (float[3] y) <uint32 nine = {9}, float scale = {1.1920929e-07}>"
        ' { p = BitShift <direction = "RIGHT"> (x, nine) f = Cast <to = 1> (p) u = Mul(f, scale)'
        " l = Log(u) m = Mul(l, a) y = Neg(m) }"
    )
    elements = {
        each.type: each.outputs[0].type.element.name
        for each in operations(written(model, precision="fp16"))
    }
    assert (elements["log"], elements["mul"]) == ("FLOAT32", "FLOAT16")


def test_integers_without_known_bounds_become_float16() -> None:
    model = "g (int32[3] x) => (float[3] y) { f = Cast <to = 1> (x) y = Exp(f) }"
    first, *_ = operations(written(model, precision="fp16"))
    assert (first.type, first.outputs[0].type.element.name) == ("cast", "FLOAT16")


def test_bits_of_bounded_numbers_have_no_sign() -> None:
    model = "g (int32[3] x, int32[3] z) => (int32[3] y) <int32 k = {16}> { p = Mod(x, k) q = Mod(z, k) y = BitwiseXor(p, q) }"
    artifact = written(model)
    assert "less" not in types(artifact)
    divided = next(each for each in operations(artifact) if each.type == "floor_div")
    assert divided.outputs[0].type.dims == (3, 4)
    (found,) = artifact(np.array([1, 15, -1], np.int32), np.array([3, 9, 16], np.int32))
    assert found.tolist() == [2, 6, 15]


REFUSED = {
    "an operator without digits": "g (uint32[3] x) => (uint32[1] y) { y = ReduceMax(x) }",
    "numbers of 64 bits at the interface": "g (uint64[3] x) => (uint64[3] y) { y = Add(x, x) }",
    "an int64 beyond 32 bits": "g (uint32[3] x) => (int64[3] y) { y = Cast <to = 7> (x) }",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    with pytest.raises(SmeltError) as caught:
        written(REFUSED[name])
    assert {error.code for error in caught.value.errors} == {"E402"}
    assert all("int32" in error.fix for error in caught.value.errors)


def test_a_model_without_unsigned_numbers_is_not_told_of_them() -> None:
    assert "unsigned" not in written("g (int32[3] x) => (int32[3] y) { y = Add(x, x) }").report


@needs_coremltools
def test_coremltools_accepts_them(tmp_path) -> None:
    path = tmp_path / "m.mlpackage"
    written(MIXED, dims={"N": (1, 5)}).save(path)
    assert problems(path) == []


INFERRED = {
    "arithmetic": (
        "g (uint32[3,4] x, uint32[4] z) => (uint32[3,4] y, float[3,4] f) <uint32 nine = {9}, uint32 seven = {7}>"
        ' { p = Mul(x, z) q = BitwiseXor(p, x) r = BitShift <direction = "RIGHT"> (q, nine)'
        " f = Cast <to = 1> (r) c = Less(p, z) d = Div(q, seven) e = Where(c, d, r) y = Sub(e, x) }"
    ),
    "random bits": (
        "g (uint32[2] x, uint32[2] z) => (uint32[2] a, uint32[2] b) <uint32 k = {7}>"
        " { a, b = smelt.Threefry2x32(k, k, x, z) }"
    ),
}


def with_constants(artifact: Artifact, given: list[np.ndarray]) -> Artifact:
    """The package with constants for its inputs, each read by one Cast to int32."""
    model = artifact.model
    for value, array in zip(list(model.graph.inputs), given, strict=True):
        bits = ir.tensor(array.view(np.int32), name=f"{value.name}_bits")
        constant = ir.Value(
            name=bits.name, type=ir.TensorType(bits.dtype), shape=value.shape, const_value=bits
        )
        model.graph.register_initializer(constant)
        (cast,) = value.consumers()
        for use in list(cast.outputs[0].uses()):
            use.node.replace_input_with(use.idx, constant)
        model.graph.remove(cast, safe=True)
        model.graph.inputs.remove(value)
    return emit_selected(model, coreml, artifact.plan.options)


@needs_coremltools
@pytest.mark.parametrize(
    "name", [pytest.param("random bits", marks=pytest.mark.slow), "arithmetic"]
)
def test_the_value_inference_of_coremltools_gives_the_same_bits(name, tmp_path, monkeypatch):
    from coremltools.converters.mil.mil.ops.defs.iOS15 import reduction

    def total(operation):
        return lambda x, axis, keepdims: np.sum(x, axis=axis, keepdims=bool(keepdims))

    # NumPy 2 refuses its own bools as keepdims.
    monkeypatch.setattr(reduction.reduce_sum, "get_operator", total)
    graph = INFERRED[name]
    source, rng = text.parse(graph, 21), np.random.default_rng(0)
    shapes = [value.shape.numpy() for value in source.graph.inputs]
    given = [rng.integers(0, 2**32, shape).astype(np.uint32) for shape in shapes]
    path = tmp_path / "m.mlpackage"
    with_constants(written(graph), given).save(path)
    _, program = loaded(path)
    results = [each.val for each in program.functions["main"].outputs]
    for found, expected in zip(results, open_runner(source)(*given), strict=True):
        np.testing.assert_array_equal(found.view(expected.dtype), expected)
