"""The origin of a node names its sources, but never grows with the model."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import provenance


def merged(count: int) -> provenance.Origin:
    """The origin of a node that took in ``count`` others, one after the other."""
    kept = ir.node("Clip", [], name="n0")
    for index in range(1, count):
        origin = provenance.merge([kept, ir.node("Clip", [], name=f"n{index}")], "merge")
        kept = ir.node("Clip", [], name="merged")
        provenance.stamp(kept, origin)
    return provenance.origin_of(kept)


def test_few_sources_are_all_named() -> None:
    origin = merged(provenance.MOST)
    assert origin.sources == tuple(f"n{i}" for i in range(provenance.MOST))
    assert origin.rules == ("merge",)


def test_many_sources_are_cut_short() -> None:
    origin = merged(1000)
    assert origin.sources[: provenance.MOST] == tuple(f"n{i}" for i in range(provenance.MOST))
    assert origin.sources[provenance.MOST :] == (provenance.MORE,)
