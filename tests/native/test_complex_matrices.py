"""Products of complex numbers as pairs, whose right operand becomes 2x2 matrices, in C."""

from __future__ import annotations

import pytest
from c_library import Library, random_inputs


def _dot(left: str, right: str, out: str, attributes: str, source: str = "w") -> str:
    sizes = [f"{shape},2" if shape else "2" for shape in (left, right, out)]
    x, w, y = (f"float[{each}]" for each in sizes)
    head = f"g ({x} x, {w} {source}) => ({y} y)"
    return f"{head} {{ y = smelt.DotGeneral<pairs=1, {attributes}>(x, {source}) }}"


GRAPHS = {
    "matrices": _dot("3,5", "5,4", "3,4", "lhs_contracting=[1], rhs_contracting=[0]"),
    "conjugated": _dot("3,5", "5,4", "3,4", "lhs_contracting=[1], rhs_contracting=[0], rhs_conj=1"),
    "both conjugated, by rows": _dot(
        "5,3", "4,5", "3,4", "lhs_contracting=[0], rhs_contracting=[1], lhs_conj=1, rhs_conj=1"
    ),
    "many columns in blocks": _dot(
        "2,16", "1100,16", "2,1100", "lhs_contracting=[1], rhs_contracting=[1], lhs_conj=1"
    ),
    "a batch": _dot(
        "5,2,3",
        "3,5,4",
        "5,2,4",
        "lhs_batch=[0], rhs_batch=[1], lhs_contracting=[2], rhs_contracting=[0]",
    ),
    "two dims summed in another order": _dot(
        "2,3,4", "4,5,3", "2,5", "lhs_contracting=[2,1], rhs_contracting=[0,2]"
    ),
    "nothing summed": _dot("3", "2", "3,2", "rhs_conj=1"),
    "numbers": _dot("", "", "", "lhs_conj=1"),
    "no columns": _dot("3,5", "5,0", "3,0", "lhs_contracting=[1], rhs_contracting=[0]"),
    "a constant": "g (float[2,3,2] x) => (float[2,1,2] y) <float[3,1,2] w = {1, 2, 3, 4, 5, 6}>"
    " { y = smelt.DotGeneral<pairs=1, lhs_contracting=[1], rhs_contracting=[0], lhs_conj=1>(x, w) }",
}


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(GRAPHS)


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_the_product_of_reals(library: Library, name: str) -> None:
    library.check(name, random_inputs(library.models[name].source))
