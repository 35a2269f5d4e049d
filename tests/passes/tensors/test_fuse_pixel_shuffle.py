"""Blocks that a Transpose moves between channels and pixels become one operator."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.ir import text
from smelt.passes.base import PassContext
from smelt.passes.tensors.fuse_pixel_shuffle import fuse_pixel_shuffle

SMALL, LARGE = "N,12,5,7", "N,3,10,14"
FORMS = {
    "DCR": ("0,3,4,1,5,2", "-1,2,2,3,5,7", "y = DepthToSpace<blocksize=2, mode=\"DCR\">(x)"),
    "CRD": ("0,1,4,2,5,3", "-1,3,2,2,5,7", "y = DepthToSpace<blocksize=2, mode=\"CRD\">(x)"),
    "back": ("0,3,5,1,2,4", "-1,3,5,2,7,2", "y = SpaceToDepth<blocksize=2>(x)"),
    "PixelUnshuffle": (
        "0,1,3,5,2,4",
        "-1,3,5,2,7,2",
        "s = SpaceToDepth<blocksize=2>(x) y = Gather<axis=1>(s, channels)",
    ),
}  # fmt: skip
CHANNELS = "int64[12] channels = {0,3,6,9,1,4,7,10,2,5,8,11}"


def sizes(case: str) -> tuple[str, str]:
    return (SMALL, LARGE) if case in ("DCR", "CRD") else (LARGE, SMALL)


def graph(case: str, dtype: str = "float", body: str = "", outputs: str = "") -> str:
    perm, split, _ = FORMS[case]
    before, after = sizes(case)
    return (
        f"g ({dtype}[{before}] x) => ({dtype}[{after}] y{outputs}) <int64[6] s = {{{split}}}, "
        f"int64[4] o = {{{after.replace('N', '-1')}}}> "
        f"{{ r = Reshape(x, s) t = Transpose<perm=[{perm}]>(r) y = Reshape(t, o) {body} }}"
    )


@pytest.mark.parametrize("case", FORMS)
@pytest.mark.parametrize("dtype", ["float", "float16", "int8"])
def test_one_operator_moves_blocks(case: str, dtype: str) -> None:
    before, after = sizes(case)
    constants = f"<{CHANNELS}>" if case == "PixelUnshuffle" else ""
    check_rewrite(
        fuse_pixel_shuffle,
        graph(case, dtype),
        f"g ({dtype}[{before}] x) => ({dtype}[{after}] y) {constants} {{ {FORMS[case][2]} }}",
    )


def test_one_channel_has_one_order() -> None:
    check_rewrite(
        fuse_pixel_shuffle,
        graph("PixelUnshuffle").replace("3,5,2,7,2", "1,5,2,7,2").replace("N,3,", "N,1,")
        .replace("N,12,", "N,4,").replace("-1,12,", "-1,4,"),
        "g (float[N,1,10,14] x) => (float[N,4,5,7] y) { y = SpaceToDepth<blocksize=2>(x) }",
    )  # fmt: skip


def test_rows_around_are_reshaped() -> None:
    """Operand and result are rows; constants state their sizes for the Reshapes around the
    operator."""
    check_rewrite(
        fuse_pixel_shuffle,
        "g (float[N,3,140] x) => (float[N,12,35] y) <int64[6] s = {-1,3,5,2,7,2}, "
        "int64[3] o = {-1,12,35}> { r = Reshape(x, s) t = Transpose<perm=[0,3,5,1,2,4]>(r) "
        "y = Reshape(t, o) }",
        "g (float[N,3,140] x) => (float[N,12,35] y) <int64[4] s = {0,3,10,14}, "
        "int64[3] o = {0,12,35}> { r = Reshape(x, s) t = SpaceToDepth<blocksize=2>(r) "
        "y = Reshape(t, o) }",
    )


KEPT = {
    "a block of other sides": graph("back").replace("3,5,2,7,2", "3,10,1,7,2")
    .replace("N,12,5,7", "N,6,10,7").replace("-1,12,5,7", "-1,6,10,7"),
    "windows": graph("back").replace("0,3,5,1,2,4", "0,1,2,4,3,5")
    .replace("N,12,5,7", "N,105,2,2").replace("-1,12,5,7", "-1,105,2,2"),
    "a type without kernels": graph("CRD", "int64"),
    "a split that is read": graph("DCR", body="z = Neg(r)", outputs=", float[N,2,2,3,5,7] z"),
    "a result of the Transpose": graph("DCR", outputs=", float[N,3,5,2,7,2] t"),
    "nothing": graph("back").replace("N,", "0,").replace("-1,", "0,"),
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_other_reshapes_stay(case: str) -> None:
    check_unchanged(fuse_pixel_shuffle, KEPT[case])


def test_targets_with_kernels_of_their_own_gather_no_channels() -> None:
    model = text.parse(graph("PixelUnshuffle"))
    cx = PassContext.of(model)
    cx.kernels = frozenset({"Reshape", "Transpose", "SpaceToDepth", "Gather"})
    fuse_pixel_shuffle.run(cx)
    assert [node.op_type for node in model.graph] == ["Reshape", "Transpose", "Reshape"]
