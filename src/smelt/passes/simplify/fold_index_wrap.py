"""Drop the wrapping of negative indices before a Gather, which counts from the end itself.

    before   w = Where(i < 0, i + n, i);  data, Clip(w, 0, n-1) ─> Gather ─> y;  w == Clip(w) ─> ok
    after    data, Clip(i, -n, n-1) ─> Gather ─> y;  i == Clip(i, -n, n-1) ─> ok

JAX writes ``x[i]`` in this way: it wraps negative indices as NumPy does, and masks rows out of
bounds by ``ok``.

Needs    (1) the same i three times; (2) constants: n is the size of the axis, and the Clip goes
         from the first to the last row. Without a Clip, an index out of bounds is an error in both
         forms.
Keeps    (1) indices wrapped by another n; (2) w for its other readers.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass

_i = var("i")
_wrapped = op(  # needs 1, keeps 2
    "Where",
    op("Less", _i, const(0), shared=True),
    op("Add", _i, const(name="count"), commutative=True, shared=True),
    _i,
    shared=True,
)
_inside = op("Clip", _wrapped, const(name="low"), const(name="high"), name="inside", shared=True)


@rule(op("Gather", var("data"), one_of(_inside, _wrapped)))
def gathered(m: Match, b: Builder) -> Replacement:
    """Let a Gather read the unwrapped index i; if the index was clipped, clip i to ``[-n, n)``."""
    count, data = m.scalar("count"), m["data"]
    if not isinstance(count, int):
        return Miss("the number added to negative indices is not a constant integer")
    if data.shape is None:
        return Miss("the rank of the gathered data is unknown")
    if data.shape[opset.attribute(m.root, "axis", m.opset)] != count:  # needs 2, keeps 1
        return Miss(
            "the number added to negative indices is not proved to be the size of the gathered axis"
        )
    index = m["i"] if m.get("inside") is None else _clipped_index(m, b)
    return index if isinstance(index, Miss) else b.like(m.root, data, index)


@rule(op("Equal", _wrapped, _inside, commutative=True))
def in_bounds(m: Match, b: Builder) -> Replacement:
    """Let a bounds check compare the unwrapped index i with ``Clip(i, -n, n - 1)``."""
    index = _clipped_index(m, b)
    return index if isinstance(index, Miss) else b.op("Equal", m["i"], index)


def _clipped_index(m: Match, b: Builder) -> ir.Value | Miss:
    """Return the unwrapped index i clipped to ``[-n, n)``, or a Miss."""
    count = m.scalar("count")
    if m["i"].dtype not in (ir.DataType.INT32, ir.DataType.INT64):
        return Miss("the index is neither int32 nor int64")
    if not isinstance(count, int) or count < 1:
        return Miss("the number added to negative indices is not a constant integer above 0")
    if (m.scalar("low"), m.scalar("high")) != (0, count - 1):
        return Miss("the bounds of the Clip are not 0 and the size of the gathered axis minus 1")
    return b.op("Clip", m["i"], b.const_like(-count, m["i"]), m["high"])


fold_index_wrap = rule_pass("fold_index_wrap", __doc__, [gathered, in_bounds], exactness=EXACT)
