"""Every contraction becomes ONNX nodes with equal results; simple ones become simple nodes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from rewrites import run_pass

from smelt.frontends.jax import trace
from smelt.frontends.onnx import to_proto
from smelt.ir import text
from smelt.passes.canonicalize.legalize_dot_general import legalize_dot_general


def legalized(fn, *specs, **options) -> ir.Model:
    model = trace(fn, *specs, **options)
    run_pass(legalize_dot_general, model)
    assert not [node for node in model.graph if node.op_type == "DotGeneral"]
    return model


def run(model: ir.Model, *inputs: np.ndarray) -> np.ndarray:
    proto = to_proto(model)
    onnx.checker.check_model(proto)
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))[0]


def op_types(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


def dot(lc, rc, lb=(), rb=(), out=None):
    return lambda a, b: lax.dot_general(a, b, ((lc, rc), (lb, rb)), preferred_element_type=out)


PLAIN = {
    "dense": (dot([1], [0]), "f32[B,8]", "f32[8,4]", ["MatMul"]),
    "dense on a sequence": (dot([2], [0]), "f32[B,S,8]", "f32[8,4]", ["MatMul"]),
    "vectors": (dot([0], [0]), "f32[8]", "f32[8]", ["MatMul"]),
    "matrix, vector": (dot([1], [0]), "f32[B,8]", "f32[8]", ["MatMul"]),
    "vector, matrix": (dot([0], [0]), "f32[8]", "f32[8,4]", ["MatMul"]),
    "lhs transposed": (dot([0], [0]), "f32[8,B]", "f32[8,4]", ["Gemm"]),
    "rhs transposed": (dot([1], [1]), "f32[B,8]", "f32[4,8]", ["Gemm"]),
    "both transposed": (dot([0], [1]), "f32[8,8]", "f32[8,8]", ["Gemm"]),
    "two dims in the order of both": (
        dot([1, 0], [1, 0]),
        "f32[8,3]",
        "f32[8,3]",
        ["Reshape", "Reshape", "MatMul"],
    ),
    "batched": (dot([2], [1], [0], [0]), "f32[B,S,8]", "f32[B,8,T]", ["MatMul"]),
    "two batch dims": (dot([3], [2], [0, 1], [0, 1]), "f32[B,S,3,8]", "f32[B,S,8,4]", ["MatMul"]),
    "attention scores": (
        dot([3], [3], [0, 2], [0, 2]),
        "f32[B,S,4,8]",
        "f32[B,T,4,8]",
        ["Transpose", "Transpose", "MatMul"],
    ),
    "attention values": (
        dot([3], [1], [0, 1], [0, 2]),
        "f32[B,4,S,T]",
        "f32[B,T,4,8]",
        ["Transpose", "MatMul"],
    ),
    "heads split": (dot([2], [0]), "f32[B,S,8]", "f32[8,2,4]", ["Reshape", "MatMul", "Reshape"]),
    "heads joined": (
        dot([2, 3], [0, 1]),
        "f32[B,S,2,4]",
        "f32[2,4,8]",
        ["Reshape", "Reshape", "MatMul"],
    ),
    "outer": (dot([], []), "f32[B]", "f32[S]", ["Unsqueeze", "Mul"]),
    "batched outer": (
        dot([], [], [0], [0]),
        "f32[B,3]",
        "f32[B,4]",
        ["Unsqueeze", "Unsqueeze", "Mul"],
    ),
    "all batch": (dot([], [], [0, 1], [0, 1]), "f32[B,3]", "f32[B,3]", ["Mul"]),
    "two unknown sizes merged": (
        dot([0, 1], [0, 1]),
        "f32[B,S,3]",
        "f32[B,S,4]",
        ["Transpose", "Reshape", "Reshape", "MatMul"],
    ),
    "sizes no Reshape can name": (dot([1], [0]), "f32[S,B]", "f32[B,S,T]", ["Einsum"]),
    "bytes": (dot([1], [0], out=jnp.int32), "i8[B,8]", "i8[8,4]", ["MatMulInteger"]),
    "bytes to bytes": (dot([1], [0]), "i8[B,8]", "i8[8,4]", ["MatMulInteger", "Cast"]),
    "shorts": (dot([1], [0]), "i16[B,8]", "i16[8,4]", ["Cast", "Cast", "MatMul", "Cast"]),
    "integers": (dot([1], [0]), "i32[B,8]", "i32[8,4]", ["MatMul"]),
    "unsigned": (dot([1], [0]), "u32[B,8]", "u32[8,4]", ["MatMul"]),
    "half to float": (
        dot([1], [0], out=jnp.float32),
        "f16[B,8]",
        "f16[8,4]",
        ["Cast", "Cast", "MatMul"],
    ),
    # ONNX Runtime is fed no bfloat16, so the casts are inside.
    "bfloat to float": (
        lambda a, b: dot([1], [0], out=jnp.float32)(a.astype("bfloat16"), b.astype("bfloat16")),
        "f32[B,8]",
        "f32[8,4]",
        ["Cast"] * 4 + ["MatMul"],
    ),
    "nothing to sum": (dot([1], [0]), "f32[B,0]", "f32[0,4]", None),
    "no results": (dot([1], [0]), "f32[0,8]", "f32[8,4]", None),
    "scalar of nothing": (dot([0], [0]), "f32[0]", "f32[0]", None),
    "sizes of 1": (dot([2], [2], [0], [0]), "f32[B,1,8]", "f32[B,1,8]", None),
    "batch dims in another order": (
        dot([2], [2], [0, 1], [1, 0]),
        "f32[B,S,8]",
        "f32[S,B,8]",
        None,
    ),
    "batch behind": (dot([0], [0], [1], [1]), "f32[8,B,3]", "f32[8,B]", None),
    "vectors in a batch": (dot([1], [1], [0], [0]), "f32[B,8]", "f32[B,8]", None),
    "many free dims in a batch": (dot([3], [2], [0], [0]), "f32[B,2,3,8]", "f32[B,S,8,5]", None),
}
SIZES = ({"B": 1, "S": 5, "T": 4}, {"B": 3, "S": 2, "T": 3})


def arrays(specs, sizes, seed):
    rng = np.random.default_rng(seed)
    for spec in specs:
        name, _, dims = spec.rstrip("]").partition("[")
        shape = [sizes[d] if d in sizes else int(d) for d in dims.split(",")]
        dtype = {
            "f32": np.float32,
            "f16": np.float16,
            "bf16": ml_dtypes.bfloat16,
            "i8": np.int8,
        }.get(name, {"i16": np.int16, "i32": np.int32, "u32": np.uint32}.get(name))
        if name[0] in "iu":
            info = np.iinfo(dtype)
            yield rng.integers(info.min, info.max, shape, dtype=np.int64).astype(dtype)
        else:
            yield rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("case", PLAIN.values(), ids=PLAIN.keys())
def test_same_numbers_by_the_plainest_nodes(case):
    fn, *specs, expected = case
    model = legalized(fn, *specs)
    if expected is not None:
        assert op_types(model) == expected
    for seed, sizes in enumerate(SIZES):
        inputs = list(arrays(specs, sizes, seed))
        want = np.asarray(fn(*map(jax.device_put, inputs)))
        got = run(model, *inputs)
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_a_constant_is_transposed_and_not_the_activation():
    weight = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    model = legalized(lambda x: lax.dot_general(x, weight, (((1,), (1,)), ((), ()))), "f32[B,8]")
    assert op_types(model) == ["Transpose", "MatMul"]


def test_the_gradient_of_a_dense_layer():
    fn = jax.grad(lambda w, x: ((x @ w) ** 2).sum())
    w, x = (np.random.default_rng(0).standard_normal((5, 5)).astype(np.float32) for _ in range(2))
    model = legalized(fn, "f32[5,5]", "f32[5,5]")
    np.testing.assert_allclose(run(model, w, x), fn(w, x), rtol=1e-4, atol=1e-4)


@st.composite
def contractions(draw):
    """Yield batch, free and contracting dims as letters, in random order on both sides."""
    counts = [draw(st.integers(0, 2)) for _ in range(4)]
    batch, left, right, summed = (
        [f"{kind}{i}" for i in range(n)] for kind, n in zip("blrk", counts, strict=True)
    )
    lhs, rhs = (
        draw(st.permutations(batch + left + summed)),
        draw(st.permutations(batch + right + summed)),
    )
    sizes = {name: draw(st.sampled_from([0, 1, 2, 3])) for name in {*lhs, *rhs}}
    order = draw(st.permutations(batch)), draw(st.permutations(summed))
    return list(lhs), list(rhs), sizes, *map(list, order)


@settings(deadline=None, max_examples=60)
@given(contractions(), st.booleans())
def test_any_contraction(case, symbolic):
    lhs, rhs, sizes, batch, summed = case
    fn = dot(
        [lhs.index(k) for k in summed],
        [rhs.index(k) for k in summed],
        [lhs.index(b) for b in batch],
        [rhs.index(b) for b in batch],
    )
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, [sizes[d] for d in side]).astype(np.float32) for side in (lhs, rhs))
    names = [[d if symbolic and sizes[d] else str(sizes[d]) for d in side] for side in (lhs, rhs)]
    model = legalized(fn, *(f"f32[{','.join(side)}]" for side in names))
    np.testing.assert_array_equal(run(model, a, b), np.asarray(fn(a, b)))


def test_dims_of_size_1_go_where_no_reshape_can_name_the_others():
    """Scores of grouped attention with one group: the numbers of queries and keys are unknown."""

    def fn(p, v):
        return lax.dot_general(p, v, (([4], [1]), ([0, 1], [0, 2])))

    model = legalized(fn, "f32[B,4,1,S,S]", "f32[B,S,4,8]")
    assert op_types(model) == ["Squeeze", "Transpose", "MatMul", "Reshape"]
    rng = np.random.default_rng(0)
    for b, s in ((1, 1), (2, 1), (1, 3), (3, 5)):
        p = rng.standard_normal((b, 4, 1, s, s)).astype(np.float32)
        v = rng.standard_normal((b, s, 4, 8)).astype(np.float32)
        np.testing.assert_allclose(run(model, p, v), fn(p, v), rtol=1e-4, atol=1e-5)


HEAD = '<ir_version: 10, opset_import: ["" : 23, "smelt" : 1, "of.nobody" : 1]>\n'
PRODUCT = "smelt.DotGeneral<lhs_contracting=[1], rhs_contracting=[0]{}>(a, b)"
TROPICAL = PRODUCT.format(', semiring="max_plus"')
TOLD = {
    "ONNX supports the semiring sum_product only": "g (float[3,4] a, float[4,5] b) => (float[3,5] y) "
    f"{{ y = {TROPICAL} }}",
    "the dtype or rank of an operand is unknown": "g (float[3,4] c, float[4,5] b) => (float[3,5] y) "
    f"{{ a = of.nobody.Hidden(c) y = {PRODUCT.format('')} }}",
}


@pytest.mark.parametrize("why", TOLD)
def test_kept_dot_generals_are_reported_with_the_reason(why: str) -> None:
    model = text.parse(HEAD + TOLD[why])
    stats = run_pass(legalize_dot_general, model)
    assert [reason for _, reason in stats.missed] == [why]
    assert model.graph.node(-1).op_type == "DotGeneral"
