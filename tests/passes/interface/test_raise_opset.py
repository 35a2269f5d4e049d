"""Raising the opset: what is declared of the numbers, and what is reported."""

from __future__ import annotations

import pytest
from rewrites import run_pass

from smelt.ir import text
from smelt.ir.interface_change import OpsetChanged
from smelt.passes.base import EXACT
from smelt.passes.interface.raise_opset import BY_OTHER_KERNELS, raise_opset

POOL = "y = AveragePool<kernel_shape=[2]>(x)"
RAISES = {
    "to the opset of another kernel": (POOL, 18, 19, 1),
    "beyond it": (POOL, 13, 21, 1),
    "not as far": (POOL, 13, 18, 0),
    "from it on": (POOL, 19, 21, 0),
    "twice the operator": ("p = AveragePool<kernel_shape=[2]>(x) " + POOL, 18, 19, 2),
    "without the operator": ("y = MaxPool<kernel_shape=[2]>(x)", 18, 19, 0),
}


@pytest.mark.parametrize(("body", "before", "to", "moved"), RAISES.values(), ids=RAISES)
def test_other_kernels_are_declared(body: str, before: int, to: int, moved: int) -> None:
    model = text.parse(f"g (float[1,1,8] x) => (y) {{ {body} }}", before)
    stats = run_pass(raise_opset, model, to=to, needed_by=("fuse-gelu",))
    assert model.opset_imports[""] == to
    assert stats.fired["operator with another kernel"] == moved
    assert stats.rewrites == stats.fired["opset raised"] == 1
    assert raise_opset.exactness_of(stats) == (BY_OTHER_KERNELS if moved else EXACT)
    assert stats.interface == [OpsetChanged(before, to, ("fuse-gelu",))]


@pytest.mark.parametrize("to", [17, 18])
def test_a_model_is_never_lowered(to: int) -> None:
    model = text.parse("g (float[2] x) => (y) { y = Neg(x) }", 18)
    assert run_pass(raise_opset, model, to=to).rewrites == 0
    assert model.opset_imports[""] == 18
