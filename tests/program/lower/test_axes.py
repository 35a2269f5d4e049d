"""An axis counted from the end is lowered like the same one counted from the front."""

from __future__ import annotations

import pytest
from lowered import lowered

CONSTANTS = (
    "int64[2] i = {1,0}, int64[1] one = {1}, int64[3,2,5] p = {" + ",".join("1" * 30) + "}, "
    "float[3,2,5] u = {" + ",".join("1" * 30) + "}, bool[2] c = {0,1}, float[2] v = {0,1}, "
    "float[4] s = {1,2,3,4}, uint8[4] z = {1,2,3,4}, int64[2] k = {2,2}, int64 d = {7}, float[4,5] g = {"
    + ",".join("1" * 20)
    + "}, int64[2] pad = {1,2}, int64[1] end = {3}"
)
BODIES = {
    "Gather": "y = Gather<axis={a}>(x, i)",
    "Gather at one place": "o = Constant<value_int=1>() y = Gather<axis={a}>(x, o)",
    "Gather of a matrix of places": "o = Constant<value=int64[2,2] {{0,1,1,0}}>() y = Gather<axis={a}>(x, o)",
    "GatherElements": "y = GatherElements<axis={a}>(x, p)",
    "ScatterElements": "y = ScatterElements<axis={a}>(x, p, u)",
    "Concat": "y = Concat<axis={a}>(x, x)",
    "Split": "y, w = Split<axis={a}>(x, k)",
    "Softmax": "y = Softmax<axis={a}>(x)",
    "LogSoftmax": "y = LogSoftmax<axis={a}>(x)",
    "Hardmax": "y = Hardmax<axis={a}>(x)",
    "ArgMax": "y = ArgMax<axis={a}>(x)",
    "ArgMin": "y = ArgMin<axis={a}, keepdims=0>(x)",
    "CumSum": "o = Constant<value_int={a}>() y = CumSum(x, o)",
    "TopK": "y, w = TopK<axis={a}>(x, one)",
    "Compress": "y = Compress<axis={a}>(x, c)",
    "Unique": "y, m = Unique<axis={a}>(x)",
    "LayerNormalization": "y = LayerNormalization<axis={a}>(x, g)",
    "RMSNormalization": "y = RMSNormalization<axis={a}>(x, g)",
    "LpNormalization": "y = LpNormalization<axis={a}>(x)",
    "Flatten": "y = Flatten<axis={a}>(x)",
    "QuantizeLinear": "y = QuantizeLinear<axis={a}>(x, s, z)",
    "DequantizeLinear": "q = Cast<to=2>(x) y = DequantizeLinear<axis={a}>(q, s, z)",
    "OneHot": "o = Cast<to=7>(x) y = OneHot<axis={a}>(o, d, v)",
    "Squeeze": "t = ReduceMax<keepdims=1>(x, ax) y = Squeeze(t, ax)",
    "ReduceSum": "y = ReduceSum<keepdims=0>(x, ax)",
    "ReduceL2": "y = ReduceL2(x, ax)",
    "ReduceLogSumExp": "y = ReduceLogSumExp(x, ax)",
    "Slice": "y = Slice(x, one, end, ax)",
    "Pad": "y = Pad(x, pad, , ax)",
    "DFT": "t = Unsqueeze(x, last) o = Constant<value_int={a}>() y = DFT(t, , o)",
    "Shape": "y = Shape<start={a}>(x)",
    "MeanVarianceNormalization": "y = MeanVarianceNormalization<axes=[{a}]>(x)",
}


def source(body: str, axis: int) -> str:
    return (
        f"g (float[3,4,5] x) => (y) <int64[1] ax = {{{axis}}}, int64[1] last = {{3}}, {CONSTANTS}> "
        f"{{ {body.format(a=axis)} }}"
    )


@pytest.mark.parametrize("name", BODIES)
def test_axes_from_the_end(name: str) -> None:
    rank = 4 if name in ("DFT", "OneHot") else 3
    found, same = (lowered(source(BODIES[name], axis)) for axis in (1, 1 - rank))
    assert [str(each) for each in found.instructions] == [str(each) for each in same.instructions]
    assert [(each.shape, each.dtype) for each in found.slots] == [
        (each.shape, each.dtype) for each in same.slots
    ]
