"""Two consecutive Pads become one."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.merge_consecutive_paddings import merge_consecutive_paddings

C = (
    "int64[4] p = {1,0,2,0}, int64[4] q = {0,1,0,1}, int64[4] r = {1,2,0,1}, "
    "float c = {3}, float z = {0}, float[1] c1 = {3}"
)
G = f"g (float[N,4] x) => (float[a,b] y) <{C}, "


def merged(pads: str, rest: str, attributes: str = "") -> str:
    return f"{G} int64[4] t = {{{pads}}}> {{ y = Pad{attributes}(x, t{rest}) }}"


MERGED = {
    "zeros": ("p1 = Pad(x, p) y = Pad(p1, q)", merged("1,1,2,1", "")),
    "the same side": ("p1 = Pad(x, p, c) y = Pad(p1, r, c)", merged("2,2,2,1", ", c")),
    "equal constants": ("p1 = Pad(x, p, c) y = Pad(p1, q, c1)", merged("1,1,2,1", ", c1")),
    "a zero and none": ("p1 = Pad(x, p, z) y = Pad(p1, q)", merged("1,1,2,1", "")),
    "none and a zero": ("p1 = Pad(x, p) y = Pad(p1, q, z)", merged("1,1,2,1", ", z")),
    "three": ("p1 = Pad(x, p) p2 = Pad(p1, q) y = Pad(p2, r)", merged("2,3,2,2", "")),
    "the mode spelled": (
        'p1 = Pad<mode="constant">(x, p) y = Pad(p1, q)',
        merged("1,1,2,1", ""),
    ),
    "edge, the same side": (
        'p1 = Pad<mode="edge">(x, p) y = Pad<mode="edge">(p1, r)',
        merged("2,2,2,1", "", '<mode="edge">'),
    ),
}


@pytest.mark.parametrize(("before", "after"), MERGED.values(), ids=MERGED.keys())
@pytest.mark.parametrize("opset", [13, 18, 23])
def test_merges(before: str, after: str, opset: int) -> None:
    check_rewrite(
        merge_consecutive_paddings, f"{G} int64 e = {{0}}> {{ {before} }}", after, opset=opset
    )


@pytest.mark.parametrize("mode", ["reflect", "wrap"])
def test_other_modes_merge_on_axes_of_their_own(mode: str) -> None:
    pad = f'Pad<mode="{mode}">'
    check_rewrite(
        merge_consecutive_paddings,
        "g (float[4,3] x) => (float[7,5] y) <int64[4] p = {1,0,2,0}, int64[4] q = {0,1,0,1}> "
        f"{{ p1 = {pad}(x, p) y = {pad}(p1, q) }}",
        f"g (float[4,3] x) => (float[7,5] y) <int64[4] t = {{1,1,2,1}}> {{ y = {pad}(x, t) }}",
    )


@pytest.mark.parametrize("dtype", ["float16", "double", "int32", "int64"])
def test_axes_of_opset_18_in_other_types(dtype: str) -> None:
    check_rewrite(
        merge_consecutive_paddings,
        f"g ({dtype}[2,N,3] x, {dtype} v) => ({dtype}[3,M,6] y) "
        "<int64[2] p = {1,2}, int64[4] q = {1,0,0,1}, int64[1] last = {-1}, "
        "int64[2] some = {0,-1}> { p1 = Pad(x, p, v, last) y = Pad(p1, q, v, some) }",
        f"g ({dtype}[2,N,3] x, {dtype} v) => ({dtype}[3,M,6] y) <int64[6] t = {{1,0,1,0,0,3}}> "
        "{ y = Pad(x, t, v) }",
    )


def test_nothing_to_pad_at_all() -> None:
    check_rewrite(
        merge_consecutive_paddings,
        "g (float[0,2] x) => (float[3,2] y) <int64[4] p = {1,0,0,0}, int64[4] q = {2,0,0,0}> "
        "{ p1 = Pad(x, p) y = Pad(p1, q) }",
        "g (float[0,2] x) => (float[3,2] y) <int64[4] t = {3,0,0,0}> { y = Pad(x, t) }",
    )


def test_merges_in_a_branch() -> None:
    def model(body: str) -> str:
        return (
            "g (bool b, float[2] x) => (float[?] y) { y = If(b) <"
            f"then_branch = t () => (float[6] u) <int64[2] p = {{1,1}}, int64[2] s = {{2,2}}> "
            f"{{ {body} }}, else_branch = e () => (float[2] w) {{ w = Neg(x) }}> }}"
        )

    check_rewrite(
        merge_consecutive_paddings,
        model("p1 = Pad(x, p) u = Pad(p1, p)"),
        model("u = Pad(x, s)"),
    )


KEPT = {
    "the first is an output": "g (float[N,4] x) => (float[a,b] y, float[c,d] p1) "
    f"<{C}> {{ p1 = Pad(x, p) y = Pad(p1, q) }}",
    "the first is read elsewhere": "g (float[N,4] x) => (float[a,b] y, float[c,d] w) "
    f"<{C}> {{ p1 = Pad(x, p) y = Pad(p1, q) w = Neg(p1) }}",
    "the values differ": f"{G} int64 e = {{0}}> {{ p1 = Pad(x, p, c) y = Pad(p1, q) }}",
    "a zero of the other sign": f"{G} float n = {{-0.0}}> {{ p1 = Pad(x, p, n) y = Pad(p1, q) }}",
    "values of the caller": f"g (float[N,4] x, float u, float v) => (float[a,b] y) <{C}> "
    "{ p1 = Pad(x, p, u) y = Pad(p1, q, v) }",
    "the two Pads have different modes": f'{G} int64 e = {{0}}> {{ p1 = Pad<mode="edge">(x, p) y = Pad(p1, q) }}',
    "pad and crop": f"{G} int64[4] n = {{-1,0,0,0}}> {{ p1 = Pad(x, p) y = Pad(p1, n) }}",
    "crop and pad": f"{G} int64[4] n = {{-1,0,0,0}}> {{ p1 = Pad(x, n) y = Pad(p1, p) }}",
    "pads of the caller": f"g (float[N,4] x, int64[4] n) => (float[a,b] y) <{C}> "
    "{ p1 = Pad(x, n) y = Pad(p1, p) }",
    "reflected twice": "g (float[6,4] x) => (float[11,4] y) <int64[4] p = {1,0,0,0}, "
    'int64[4] q = {0,0,4,0}> { p1 = Pad<mode="reflect">(x, p) y = Pad<mode="reflect">(p1, q) }',
    "an overridable pad": "g (float[2] x, int64[2] p) => (float[?] y) <int64[2] p = {1,1}, "
    "int64[2] q = {1,1}> { p1 = Pad(x, p) y = Pad(p1, q) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(merge_consecutive_paddings, graph)
