"""How much a Pad adds to the spatial axes of an image, and a Slice removes from them."""

from __future__ import annotations

import pytest

from smelt.ir import text
from smelt.ir.constants import Constants
from smelt.ir.shapes.inference import ShapeInference
from smelt.passes.convolution.spatial_edges import crops_of, padding_of

IN_ORDER = [0, 1, 2, 3]

HEAD = "g (float[2,3,8,9] x, int64[8] n, float z) => (y) "


def node(call: str, constants: str):
    model = text.parse(f"{HEAD} <{constants}> {{ y = {call} }}", 18)
    ShapeInference(model).infer_model()
    return model.graph[0]


PADS = "int64[8] p = {{{}}}, float none = {{0}}, float one = {{1}}"
EDGES = PADS.format("0,0,1,2,0,0,3,4")
LAST = PADS.format("0,1,2,0,0,3,4,0")
SOME = "int64[2] a = {3,-2}, int64[4] p = {1,2,3,4}"
PADDED = {
    "all axes": ("Pad(x, p)", EDGES, IN_ORDER, [1, 2, 3, 4]),
    "channels last": ("Pad(x, p)", LAST, [0, 3, 1, 2], [1, 2, 3, 4]),
    "of zeros by name": ("Pad(x, p, none)", EDGES, IN_ORDER, [1, 2, 3, 4]),
    "some axes": ("Pad(x, p, , a)", SOME, IN_ORDER, [2, 1, 4, 3]),
    "with another number": ("Pad(x, p, one)", EDGES, IN_ORDER, None),
    "with a number of the run": ("Pad(x, p, z)", EDGES, IN_ORDER, None),
    "with its edges": ('Pad<mode="edge">(x, p)', EDGES, IN_ORDER, None),
    "pads of the run": ("Pad(x, n)", EDGES, IN_ORDER, None),
    "cropped": ("Pad(x, p)", PADS.format("0,0,1,-1,0,0,3,4"), IN_ORDER, None),
    **{
        f"the begin or end {place} of batch and channels": (
            "Pad(x, p)",
            PADS.format(",".join("1" if i == place else "0" for i in range(8))),
            IN_ORDER,
            None,
        )
        for place in (0, 1, 4, 5)
    },
    "nothing": ("Pad(x, p)", PADS.format("0,0,0,0,0,0,0,0"), IN_ORDER, [0, 0, 0, 0]),
}


@pytest.mark.parametrize("name", PADDED)
def test_pads(name: str) -> None:
    call, constants, order, pads = PADDED[name]
    assert padding_of(node(call, constants), order, Constants(), 18) == pads


def test_pads_before_opset_11_are_attributes_and_are_not_read() -> None:
    pad = node("Pad(x, p)", EDGES)
    assert padding_of(pad, IN_ORDER, Constants(), 10) is None
    assert padding_of(pad, IN_ORDER, Constants(), 11) == [1, 2, 3, 4]


CUTS = "int64[2] b = {{{}}}, int64[2] e = {{{}}}, int64[2] a = {{{}}}, int64[2] s = {{{}}}"
CUT = {
    "begins and ends": ("2,3", "-1,99", "2,3", "1,1", IN_ORDER, [2, 3, 1, 0]),
    "in another order": ("3,2", "99,-1", "3,-2", "1,1", IN_ORDER, [2, 3, 1, 0]),
    "channels last": ("2,3", "-1,99", "1,2", "1,1", [0, 2, 3, 1], [2, 3, 1, 0]),
    "nothing": ("0,0", "8,9", "2,3", "1,1", IN_ORDER, [0, 0, 0, 0]),
    "all but one": ("7,0", "8,1", "2,3", "1,1", IN_ORDER, [7, 0, 0, 8]),
    "everything": ("8,0", "8,1", "2,3", "1,1", IN_ORDER, None),
    "channels": ("1,0", "3,1", "1,3", "1,1", IN_ORDER, None),
    "the batch": ("1,0", "2,1", "0,3", "1,1", IN_ORDER, None),
    "steps": ("0,0", "8,9", "2,3", "1,2", IN_ORDER, None),
    "backwards": ("7,0", "0,9", "2,3", "-1,1", IN_ORDER, None),
}


@pytest.mark.parametrize("name", CUT)
def test_crops(name: str) -> None:
    *parts, order, crops = CUT[name]
    cut = node("Slice(x, b, e, a, s)", CUTS.format(*parts))
    assert crops_of(cut, order, [8, 9], Constants()) == crops


def test_crops_of_an_unknown_size_are_unknown() -> None:
    cut = node("Slice(x, b, e, a, s)", CUTS.format("2,3", "-1,99", "2,3", "1,1"))
    assert crops_of(cut, IN_ORDER, [8, None], Constants()) is None
    assert (
        crops_of(
            node("Slice(x, b, e, a, n)", EDGES + ", " + CUTS.format("2,3", "-1,99", "2,3", "1,1")),
            IN_ORDER,
            [8, 9],
            Constants(),
        )
        is None
    )
