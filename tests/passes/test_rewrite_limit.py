"""Passes in which one match is several rewrites stop at a limit, and leave a whole model.

Bisection sets the limit.
"""

from __future__ import annotations

import pytest
from recorded import parsed

from smelt.compiler import optimize_model
from smelt.ir.verify import problems_of

SEVERAL = {
    "offset-to-bias": "opset 23: (float[N,3] x) => (float[N,2] p, float[N,2] q) <float[3,4] w = "
    "{1,2,3,4,5,6,7,8,9,10,11,12}, float[4] b = {1,2,3,4}, float one = {1}, int64[2] s = {2,2}> "
    "{ g = Gemm(x, w, b) u, v = Split<axis=1>(g, s) p = Add(u, one) q = Add(v, one) }",
    "slices-to-split": "opset 23: (float[6] x) => (float[2] u, float[2] v, float[2] w) "
    "<int64[1] o = {0}, int64[1] i = {2}, int64[1] j = {4}, int64[1] e = {6}> "
    "{ p = Slice(x, o, i) q = Slice(x, i, j) r = Slice(x, j, e) u = Neg(p) v = Exp(q) w = Abs(r) }",
}


def rewrites_within(row: str, limit: int | None, pipeline: str) -> int:
    """Return the rewrites of a run with a limit."""
    model = parsed(row)
    reports = optimize_model(model, pipeline=pipeline, rewrites=limit, highest_opset=0)
    assert not list(problems_of(model))
    return sum(report.stats.rewrites for report in reports)


@pytest.mark.parametrize("pass_", SEVERAL)
def test_a_match_of_several_rewrites_is_not_cut(pass_: str) -> None:
    whole = rewrites_within(SEVERAL[pass_], None, pass_)
    assert whole
    for limit in range(whole + 1):
        done = rewrites_within(SEVERAL[pass_], limit, pass_)
        assert done <= limit
