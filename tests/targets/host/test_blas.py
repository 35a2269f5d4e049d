"""Products by BLAS, whose epilogue is applied block by block."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.native.emit.in_process import source_of
from smelt.native.kernels.blas import GEMM
from smelt.native.rewrite import call_blas as choice
from smelt.native.rewrite.call_blas import call_blas
from smelt.native.rewrite.fuse_elementwise import fuse_elementwise
from smelt.native.schedule import planned
from smelt.runtime.jit import blas

pytestmark = pytest.mark.skipif(blas.table() is None, reason="scipy-openblas32 is not installed")

RNG = np.random.default_rng(0)


@pytest.fixture(params=["native"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let BLAS compute small products, too, so that tests need no large ones."""
    monkeypatch.setattr(choice, "LARGEST_LEFT", 0)


def called(artifact) -> dict[str, tuple[str, ...]]:
    """Return the operators that call BLAS, in program order, each with its epilogue."""
    program = artifact.opened().compiled.program.copy()
    ordered = planned(program, "host", (call_blas,), (fuse_elementwise,))
    steps = [step for step in ordered.instructions if step.op == GEMM]
    return {step.op: tuple(each.op for each in step.epilogue) for step in steps}


def some(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


PRODUCT = """g (float[300,200] x, float[200,130] w, float[130] b, float[300,130] r) => (float[300,130] y) {
    m = MatMul(x, w)
    s = Add(m, b)
    t = Tanh(s)
    y = Add(t, r)
}"""


def test_the_epilogue_is_applied_to_blocks_of_rows(agree, compile_host) -> None:
    given = some(300, 200), some(200, 130), some(130), some(300, 130)
    agree(PRODUCT, *given, atol=1e-4)
    assert called(compile_host(PRODUCT)) == {GEMM: ("Add", "Tanh", "Add")}


@pytest.mark.slow
def test_the_last_of_several_blocks_is_longer(agree) -> None:
    source = PRODUCT.replace("300", "500").replace("130", "1000")
    given = some(500, 200), some(200, 1000), some(1000), some(500, 1000)
    agree(source, *given, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        PRODUCT.replace("Add(t, r)", "Add(t, m)"),
        PRODUCT.replace("Add(t, r)", "Mul(r, s)"),
        PRODUCT.replace("(float[300,130] y)", "(float[300,130] y, float[300,130] s)"),
        PRODUCT.replace("Add(m, b)", "Add(m, r)").replace("Add(t, r)", "Sub(r, t)"),
    ],
    ids=["read twice", "a step read twice", "a step is an output", "the same operand twice"],
)
def test_a_product_with_other_readers_keeps_its_values(agree, source: str) -> None:
    given = some(300, 200), some(200, 130), some(130), some(300, 130)
    agree(source, *given, atol=1e-4)


@pytest.mark.slow
def test_a_batch_with_operands_of_each_broadcast_shape(agree, compile_host) -> None:
    source = """g (float[3,200,160] x, float[3,160,140] w, float[200,1] a, float[3,1,1] b, float[3,200,140] c) => (float[3,200,140] y) {
        m = MatMul(x, w) s = Add(m, a) t = Mul(s, b) y = Sub(c, t)
    }"""
    given = some(3, 200, 160), some(3, 160, 140), some(200, 1), some(3, 1, 1), some(3, 200, 140)
    agree(source, *given, atol=1e-3)
    assert GEMM in called(compile_host(source))


def source_text(program) -> str:
    return source_of(planned(program, "host", (call_blas,), (fuse_elementwise,))).text


def test_small_products_do_not_call_blas(compile_host) -> None:
    source = "g (float[8,8] x, float[8,8] w) => (float[8,8] y) { y = MatMul(x, w) }"
    assert "blas_" not in source_text(compile_host(source).opened().compiled.program.copy())
