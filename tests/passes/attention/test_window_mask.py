"""The mask of shifted windows, as torchvision's Swin and the Swin V2 of transformers write it."""

import numpy as np
import pytest
from rewrites import check_unchanged

from smelt import optimize
from smelt.ir import text
from smelt.passes.attention.fuse_attention import fuse_attention
from smelt.runtime.runner import open_runner


def graph(
    batch: str = "N", body: str = "w = Add(a, m)", mask: str = "1,4,1,5,5", size: int = 5
) -> str:
    """Return scores of four windows of ``size`` positions, computed from ``x``: B,4*size,3*8."""
    rows, cells = 4 * size, 3 * size * size
    return (
        f"g (float[{batch},{rows},24] x, float[{batch},{rows},24] z) => (float[{batch},{rows},24] "
        f"y) <int64[4] heads = {{-1,{size},3,8}}, int64[5] apart = {{-1,4,3,{size},{size}}}, "
        f"int64[4] joined = {{-1,3,{size},{size}}}, int64[3] rows = {{-1,{rows},24}}, "
        f"float c = {{0.35}}, float[3,{size},{size}] table = "
        f"{{{','.join(str(i % 7) for i in range(cells))}}}, float[{mask}] m = {{{hidden(mask)}}}> "
        "{ r = Reshape(x, heads) q = Transpose<perm=[0,2,1,3]>(r) "
        "k = Transpose<perm=[0,2,3,1]>(r) t = Reshape(z, heads) v = Transpose<perm=[0,2,1,3]>(t) "
        f"s = MatMul(q, k) d = Mul(s, c) n = Add(d, table) a = Reshape(n, apart) {body} "
        "j = Reshape(w, joined) p = Softmax<axis=-1>(j) o = MatMul(p, v) "
        "u = Transpose<perm=[0,2,1,3]>(o) y = Reshape(u, rows) }"
    )


def hidden(shape: str) -> str:
    size = int(np.prod([int(dim) for dim in shape.split(",")]))
    return ",".join("-100" if i % 3 == 1 else "0" for i in range(size))


LARGE = 65
"""Positions of a window with whose masks rules that read small constants alone do nothing."""


@pytest.mark.parametrize(
    ("batch", "mask", "size"),
    [
        *((batch, mask, 5) for batch in ("N", "3") for mask in ("1,4,1,5,5", "1,4,3,5,5")),
        ("N", f"1,4,1,{LARGE},{LARGE}", LARGE),
    ],
)
def test_one_attention_of_all_windows(batch: str, mask: str, size: int) -> None:
    source = text.parse(graph(batch, mask=mask, size=size), 23)
    model = optimize(source)
    kinds = [node.op_type for node in model.graph]
    assert kinds.count("Attention") == 1
    assert not {"Softmax", "MatMul"} & set(kinds)
    inputs = np.random.default_rng(0).standard_normal((2, 3, 4 * size, 24)).astype(np.float32)
    found, expected = (open_runner(m)(*inputs)[0] for m in (model, source))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


KEPT = {
    "a mask of one window for all": graph(mask="1,1,1,5,5"),
    "one number for each query": graph(mask="1,4,1,5,1"),
    "windows in another order": graph(body="b = Add(a, m) w = Transpose<perm=[1,0,2,3,4]>(b)"),
}  # fmt: skip


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_keeps(source: str) -> None:
    check_unchanged(fuse_attention, source)


def test_below_the_opset_of_attention_it_stays() -> None:
    check_unchanged(fuse_attention, graph(), opset=20)
