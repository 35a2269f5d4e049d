"""A Scan with batches is a Scan over batches: raised from opset 8, it computes the same."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import ErrorList
from smelt.ir import text
from smelt.ir.opsets.raise_opset import raise_opset
from smelt.runtime.onnxruntime import OnnxRuntime

BODY = "b (float[2] s, float[2] n) => (float[2] t, float[2] r) { m = Mul(s, n) t = Add(m, n) r = Neg(t) }"


def scan(given: str = "float[B,2] a, float[B,T,2] x", first: str = '""', more: str = "") -> str:
    return (
        f"g ({given}) => (float[B,2] y, float[B,T,2] z) "
        f"{{ y, z = Scan({first}, a, x) <num_scan_inputs=1{more}, body = {BODY}> }}"
    )


@pytest.mark.parametrize("more", ["", ", directions=[1]"])
@pytest.mark.parametrize("sizes", [(1, 3), (3, 1), (4, 5)])
def test_every_batch_is_walked_by_itself(sizes: tuple[int, int], more: str) -> None:
    model = text.parse(scan(more=more), 8)
    rng = np.random.default_rng(0)
    a, x = (rng.standard_normal(s).astype(np.float32) for s in ((*sizes[:1], 2), (*sizes, 2)))
    wanted = OnnxRuntime(model)(a, x)
    dims = {"B": (1, 4), "T": (1, 5)}
    for target, given in (("host", {}), ("c", {"dims": dims})):
        for mine, theirs in zip(
            smelt.compile(model, target=target, **given)(a, x), wanted, strict=True
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_the_form_of_opset_9() -> None:
    model = text.parse(scan(), 8)
    raise_opset(model, 13)
    (outer,) = model.graph
    (inner,) = outer.attributes["body"].as_graph()
    assert [node.op_type for node in (outer, inner)] == ["Scan", "Scan"]
    assert outer.attributes["num_scan_inputs"].as_int() == 2
    assert [value.name for value in outer.inputs] == ["a", "x"]


def test_sequences_of_several_lengths_are_refused() -> None:
    model = text.parse(scan("int64[B] l, float[B,2] a, float[B,T,2] x", "l"), 8)
    with pytest.raises(ErrorList, match="E230"):
        raise_opset(model, 13)
    assert model.opset_imports[""] == 8
