"""Operands of open sizes that broadcast in some runs and not in others."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.program.computed_sizes import broadcast_size
from smelt.program.run_sizes import Size

GRAPH = """g (float[N,3] x, float[M,1] y, float[N,2,3] a, float[M,3,2] b) =>
    (float[P,3] sum, float[P,3] best, float[P,2,2] products) {
    sum = Add(x, y) less = Less(x, y) h = Where(less, y, x) best = Mul(h, sum)
    products = MatMul(a, b) }"""
TARGETS = ["c", "host"]


def compiled(target: str) -> smelt.Artifact:
    bounds = {"dims": {"N": (1, 6), "M": (1, 5)}} if target == "c" else {}
    return smelt.compile(text.parse(GRAPH, 21), target=target, **bounds)


def drawn(n: int, m: int) -> list[np.ndarray]:
    draw = np.random.default_rng(n + 10 * m).standard_normal
    return [draw(shape).astype("f4") for shape in ((n, 3), (m, 1), (n, 2, 3), (m, 3, 2))]


@pytest.mark.parametrize("target", TARGETS)
def test_each_run_has_the_sizes_of_numpy(target: str) -> None:
    run = compiled(target)
    for n, m in ((1, 1), (1, 5), (6, 1), (4, 4)):
        x, y, a, b = drawn(n, m)
        wanted = (x + y, np.maximum(x, y) * (x + y), a @ b)
        for got, expected in zip(run(x, y, a, b), wanted, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_that_do_not_broadcast_end_the_run(target: str) -> None:
    run = compiled(target)
    with pytest.raises(SmeltError):
        run(*drawn(2, 3))


def test_two_sizes_broadcast_to_one() -> None:
    n, m, wide = Size.named("n", 1, 4), Size.named("m", 0, 5), Size.named("w", 2, 3)
    assert [broadcast_size(1, 3), broadcast_size(3, 1), broadcast_size(0, 1)] == [3, 3, 0]
    assert broadcast_size(n, 1) is n
    assert broadcast_size(n, wide) is wide
    assert broadcast_size(wide, n) is wide
    assert broadcast_size(n, 7) == 7
    both = broadcast_size(n, m)
    assert str(both) == "(n == 1 ? m : n)"
    assert isinstance(both, Size)
    assert (both.low, both.high) == (0, 5)
