"""x * clip(x + 3, 0, 6) / 6 is HardSwish."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.activation.fuse_hard_swish import fuse_hard_swish

G = "g (float[N,3] x) => (float[N,3] y)"
CONSTANTS = "<float three = {3}, float zero = {0}, float six = {6}, float sixth = {0.16666667}>"
CLIPPED = "a = Add(x, three) c = Clip(a, zero, six)"
SPELLINGS = {
    "divided first": f"{CLIPPED} d = Div(c, six) y = Mul(x, d)",
    "times first": f"{CLIPPED} d = Mul(sixth, c) y = Mul(d, x)",
    "divided last": f"{CLIPPED} p = Mul(c, x) y = Div(p, six)",
    "times last": f"{CLIPPED} p = Mul(x, c) y = Mul(p, sixth)",
    "HardSigmoid": "h = HardSigmoid<alpha=0.16666667, beta=0.5>(x) y = Mul(h, x)",
}


@pytest.mark.parametrize("body", SPELLINGS.values(), ids=SPELLINGS.keys())
@pytest.mark.parametrize("opset", [14, 21, 25])
def test_fuses(body: str, opset: int) -> None:
    check_rewrite(
        fuse_hard_swish,
        f"{G} {CONSTANTS} {{ {body} }}",
        f"{G} {{ y = HardSwish(x) }}",
        opset=opset,
        modes=("normal",),
    )


KEPT = {
    "another bound": SPELLINGS["divided first"].replace("zero, six", "zero, three"),
    "another term": SPELLINGS["divided first"].replace("Add(x, three)", "Add(x, six)"),
    "another divisor": SPELLINGS["divided first"].replace("Div(c, six)", "Div(c, three)"),
    "another factor": SPELLINGS["divided first"].replace("Mul(x, d)", "Mul(a, d)"),
    "another alpha": "h = HardSigmoid(x) y = Mul(h, x)",
    "another beta": "h = HardSigmoid<alpha=0.16666667, beta=0.4>(x) y = Mul(h, x)",
    "read elsewhere": f"{CLIPPED} d = Div(c, six) m = Mul(x, d) y = Add(m, c)",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_keeps(body: str) -> None:
    check_unchanged(fuse_hard_swish, f"{G} {CONSTANTS} {{ {body} }}")


def test_keeps_before_opset_14() -> None:
    check_unchanged(
        fuse_hard_swish, f"{G} {CONSTANTS} {{ {SPELLINGS['divided first']} }}", opset=13
    )


def test_keeps_other_types() -> None:
    constants = CONSTANTS.replace("float ", "double ")
    source = f"{G.replace('float', 'double')} {constants} {{ {SPELLINGS['divided first']} }}"
    check_unchanged(fuse_hard_swish, source)
