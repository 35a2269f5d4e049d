"""No pass makes an operator that the target lacks, if the model does not have it already."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
import pytest
from jax import lax
from sampling import sampled

import smelt
from smelt.compiler import optimize_model
from smelt.ir import scope, text
from smelt.passes.pipeline import Step
from smelt.passes.run import PassReport
from smelt.targets.base import Artifact, Plan, Target
from smelt.targets.registry import find_target, target_names

MODELS = Path(__file__).parent.parent / "models"

BYTES = np.random.default_rng(0).integers(-128, 128, (6, 4)).astype(np.int8)


def _int_dot(a: Any, b: Any) -> Any:
    return lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)


def _batched(a: Any, b: Any) -> Any:
    return lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,))), preferred_element_type=jnp.int32)


def _conv(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", preferred_element_type=jnp.int32)


INTEGERS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "dot": (_int_dot, ("i8[5,6]", "i8[6,4]")),
    "dot of unsigned": (_int_dot, ("u8[5,6]", "u8[6,4]")),
    "dot of both": (_int_dot, ("u8[5,6]", "i8[6,4]")),
    "dot with a constant": (lambda a: _int_dot(a, BYTES), ("i8[5,6]",)),
    "dot to floats": (
        lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32),
        ("i8[5,6]", "i8[6,4]"),
    ),
    "dot that wraps": (lambda a, b: a @ b, ("i8[5,6]", "i8[6,4]")),
    "batched": (_batched, ("i8[2,5,6]", "i8[2,6,4]")),
    "vectors": (_int_dot, ("i8[5,6]", "i8[6]")),
    "several dims": (
        lambda a, b: jnp.einsum("abc,bcd->ad", a, b, preferred_element_type=jnp.int32),
        ("i8[2,3,4]", "i8[3,4,5]"),
    ),
    "conv": (_conv, ("i8[1,2,5,5]", "i8[3,2,3,3]")),
    "conv of unsigned": (_conv, ("u8[1,2,5,5]", "u8[3,2,3,3]")),
}

OPTIONS = {"coreml": {"precision": "fp32"}}
"""By default, this target computes floats in float16."""


def _inputs(specs: tuple[str, ...]) -> list[np.ndarray]:
    rng, arrays = np.random.default_rng(1), []
    for spec in specs:
        kind, shape = spec[:2], [int(n) for n in spec[3:-1].split(",")]
        dtype = np.int8 if kind == "i8" else np.uint8
        info = np.iinfo(dtype)
        arrays.append(rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype))
    return arrays


@pytest.mark.parametrize("target", target_names())
@pytest.mark.parametrize("name", sampled(INTEGERS, 2))
def test_products_of_bytes_on_every_target(name: str, target: str) -> None:
    fn, specs = INTEGERS[name]
    arrays = _inputs(specs)
    (got,) = smelt.compile(fn, *specs, target=target, **OPTIONS.get(target, {}))(*arrays)
    expected = fn(*map(jax.device_put, arrays))
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


ZERO_POINTS = {
    "none": ("", ""),
    "one each": ("p", "q"),
    "of rows": ("r", ""),
    "of columns": ("p", "c"),
    "of every row and column": ("r", "c"),
}


@pytest.mark.parametrize("target", ["host", "c"])
@pytest.mark.parametrize("batch", ["", "2,"])
@pytest.mark.parametrize("name", ZERO_POINTS)
def test_a_matmul_integer_of_the_model(name: str, batch: str, target: str) -> None:
    left_zero, right_zero = ZERO_POINTS[name]
    given = ", ".join(part for part in ("a", "b", left_zero, right_zero) if part)
    model = text.parse(
        f"g (uint8[{batch}3,4] a, int8[4,2] b, uint8 p, int8[1] q, uint8[3] r, int8[2] c)"
        f" => (int32[{batch}3,2] y) {{ y = MatMulInteger({given}) }}"
    )
    rng = np.random.default_rng(3)
    batch_sizes = [2] if batch else []
    a = rng.integers(0, 256, [*batch_sizes, 3, 4]).astype(np.uint8)
    b, q, c = (rng.integers(-128, 128, size).astype(np.int8) for size in ((4, 2), 1, 2))
    p, r = np.uint8(200), rng.integers(0, 256, 3).astype(np.uint8)
    (got,) = smelt.compile(model, target=target)(a, b, p, q, r, c)
    zeros = {"": 0, "p": int(p), "q": int(q[0]), "r": r[:, None].astype(int), "c": c.astype(int)}
    expected = (a.astype(int) - zeros[left_zero]) @ (b.astype(int) - zeros[right_zero])
    np.testing.assert_array_equal(got, expected)


class Watch:
    """Says after each pass which operators are new, and neither the target's nor the source's."""

    def __init__(self, model: ir.Model, target: Target) -> None:
        self.allowed = _operators(model) | (target.kernels or _operators(model))
        self.wrong: list[str] = []

    def before_pass(self, step: Step, model: ir.Model) -> None: ...

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        found = _operators(model) - self.allowed
        self.wrong += [f"{step} made {name}" for name in sorted(found)]


def _operators(model: ir.Model) -> frozenset[str]:
    return frozenset(node.op_type for node in scope.nodes(model) if not node.domain)


def _layers(x: Any, w: Any) -> Any:
    """Most of what passes fuse: norms, activations, attention, softmax, swish."""
    centred = x - x.mean(-1, keepdims=True)
    x = centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    y = jax.nn.gelu(x @ w) + jax.nn.silu(x) + jax.nn.gelu(x, approximate=False)
    heads = y.reshape(y.shape[0], y.shape[1], 2, 4)
    return jax.nn.dot_product_attention(heads, heads, heads) + jax.nn.softmax(heads, -1)


SOURCES: dict[str, Callable[[], ir.Model]] = {
    **{path.stem: lambda path=path: smelt.load(path) for path in sorted(MODELS.glob("*.onnx"))},
    "layers": lambda: smelt.trace(_layers, "f32[2,5,8]", "f32[8,8]"),
    **{name: lambda case=case: smelt.trace(case[0], *case[1]) for name, case in INTEGERS.items()},
}


@pytest.mark.parametrize("target", ["host", "c"])
@pytest.mark.parametrize("name", SOURCES)
def test_no_default_pass_makes_what_the_target_lacks(name: str, target: str) -> None:
    model, chosen = SOURCES[name](), find_target(target)
    watch = Watch(model, chosen)
    pipeline = f"default,{chosen.passes}" if chosen.passes else "default"
    operators = frozenset(operator.key for operator in chosen.operators)
    optimize_model(
        model,
        pipeline=pipeline,
        operators=operators,
        kernels=chosen.kernels,
        observers=[watch],
    )
    assert not watch.wrong


def _emit(plan: Plan) -> Artifact:
    return Artifact("few", plan.model, {}, plan)


def test_rules_say_what_the_target_lacks() -> None:
    few = Target("few", "", _emit, kernels=frozenset({"MatMul", "Cast", "Add", "Mul", "Sigmoid"}))
    model = text.parse("g (float[4] x) => (float[4] y) { s = Sigmoid(x) y = Mul(s, x) }", opset=24)
    artifact = smelt.compile(model, target=few)
    assert [node.op_type for node in artifact.model.graph] == ["Sigmoid", "Mul"]
    missed = [miss["why"] for entry in artifact.report["passes"] for miss in entry["near_misses"]]
    assert "the target does not compute Swish" in missed
    plenty = Target("plenty", "", _emit, kernels=few.kernels and few.kernels | {"Swish"})
    swished = smelt.compile(model, target=plenty)
    assert [node.op_type for node in swished.model.graph] == ["Swish"]


def test_bytes_are_multiplied_as_integers_where_there_is_nothing_better() -> None:
    few = Target("few", "", _emit, kernels=frozenset({"MatMul", "Cast"}))
    fn, specs = INTEGERS["dot"]
    model = smelt.compile(fn, *specs, target=few).model
    assert sorted(node.op_type for node in model.graph) == ["Cast", "Cast", "MatMul"]
