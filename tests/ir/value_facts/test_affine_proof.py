"""What is proved of integers that are computed at run time from sizes that only a run knows."""

from __future__ import annotations

import pytest

from smelt.ir import text
from smelt.ir.constants import Constants
from smelt.ir.value_facts.affine import Affine
from smelt.ir.value_facts.affine_proof import AffineProof
from smelt.passes.base import PassContext

COUNT = "n = Shape<start=1, end=2>(x) e = Squeeze(n) i = Range(zero, e, one) "
CONSTANTS = (
    "int64 zero = {0}, int64 one = {1}, int64[1] z = {0}, int64[1] w = {1}, int64[1] l = {-1}, "
    "int64[4] row = {1,1,-1,1}, int64[2] pair = {1,-1}, int64[2,3] table = {5,7,9,15,17,19}, "
    "int64[2] bend = {0,0}, int64[3] odd = {0,1,3}"
)


def proved(body: str, kind: str = "int64") -> Affine | None:
    """The form of y in a model of x: B,S."""
    source = f"g (float[B,S] x, int64[B,S] any) => ({kind} y) <{CONSTANTS}> {{ {body} }}"
    model = text.parse(source, 21)
    PassContext.of(model)
    return AffineProof(Constants()).of(model.graph.outputs[0])


AFFINE = {
    "a Range": (COUNT + "y = Identity(i)", 0, (1,)),
    "behind a Reshape": (COUNT + "y = Reshape(i, row)", 0, (0, 0, 1, 0)),
    "a sum of rows and columns": (
        COUNT + "a = Unsqueeze(i, w) b = Unsqueeze(i, z) d = Add(a, a) y = Sub(d, b)",
        0,
        (2, -1),
    ),
    "a Slice": (COUNT + "t = Shape(i) y = Slice(i, w, t, z)", 1, (1,)),
    "a Concat that goes on": (
        COUNT + "h = Slice(i, z, w, z) m = Sub(h, one) y = Concat<axis=0>(m, i)",
        -1,
        (1,),
    ),
    "a table": (COUNT + "y = Identity(table)", 5, (10, 2)),
    "columns of a table": (
        COUNT + "f = Identity(table) y = Gather<axis=1>(f, i)",
        5,
        (10, 2),
    ),
    "a sum of ones": (
        COUNT + "c = Mul(i, zero) d = Add(c, one) y = CumSum(d, zero)",
        1,
        (1,),
    ),
    "zeros, however they are read": (
        COUNT + "c = Mul(i, zero) y = Gather(c, any)",
        0,
        (0, 0),
    ),
    "tuples of places": (
        COUNT + "f = Identity(table) r = Mul(i, zero) p = Unsqueeze(r, w) q = Unsqueeze(i, w) "
        "t = Concat<axis=-1>(p, q) y = GatherND(f, t)",
        5,
        (2,),
    ),
}


@pytest.mark.parametrize(("body", "start", "steps"), AFFINE.values(), ids=AFFINE)
def test_affine(body: str, start: int, steps: tuple[int, ...]) -> None:
    assert proved(body) == Affine(start, steps)


TRUTHS = {
    "no position is below 0": (COUNT + "y = Less(i, zero)", 0),
    "each position is 0 or more": (COUNT + "y = GreaterOrEqual(i, zero)", 1),
    "a difference that stays": (COUNT + "j = Add(i, one) y = Equal(i, j)", 0),
    "And with a falsehood": (
        COUNT + "f = Less(i, zero) a = Greater(any, zero) y = And(f, a)",
        0,
    ),
}


@pytest.mark.parametrize(("body", "truth"), TRUTHS.values(), ids=TRUTHS)
def test_uniform_truths(body: str, truth: int) -> None:
    form = proved(body, "bool")
    assert form is not None
    assert form.is_uniform
    assert form.start == truth


UNPROVED = {
    "what is given": "y = Identity(any)",
    "a start that is not known": "n = Shape(x) a = Gather(n, zero) b = Add(a, one) "
    "y = Range(a, b, one)",
    "a table that bends": COUNT + "y = Concat<axis=0>(odd, i)",
    "a Concat that begins again": COUNT + "y = Concat<axis=0>(i, i)",
    "a Slice from the end": COUNT + "t = Shape(i) y = Slice(i, l, t, z)",
    "places from the end": COUNT + "f = Identity(table) m = Sub(i, one) y = Gather<axis=1>(f, m)",
    "a product of positions": COUNT + "y = Mul(i, i)",
    "steps too long for an index": COUNT + "y = Mul(i, huge)",
    "positions expanded to another size, which may be one position": COUNT
    + "t = Shape<start=0, end=1>(x) y = Expand(i, t)",
    "a sum of positions along two sizes, of which one may be 1": COUNT
    + "t = Shape<start=0, end=1>(x) f = Squeeze(t) j = Range(zero, f, one) y = Sub(i, j)",
    "rows and columns in one axis": COUNT + "a = Unsqueeze(i, w) b = Unsqueeze(i, z) c = Add(a, b) "
    "y = Reshape(c, l)",
}


@pytest.mark.parametrize("body", UNPROVED.values(), ids=UNPROVED)
def test_unproved(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "CONSTANTS", CONSTANTS + ", int64 huge = {4611686018427387904}")
    assert proved(body) is None


@pytest.mark.parametrize("operator", ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"])
def test_comparisons_that_hold_of_some_positions_only(operator: str) -> None:
    assert proved(COUNT + f"y = {operator}(i, one)", "bool") is None


def test_int32_wraps_sooner() -> None:
    assert proved(COUNT + "a = Mul(i, one) y = Cast<to=6>(a)", "int32") == Affine(0, (1,))
    assert proved(COUNT + "d = Add(i, i) y = Cast<to=6>(d)", "int32") is None
