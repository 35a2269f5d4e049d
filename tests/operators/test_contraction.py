"""Equations, the sizes of their labels, paths, and the steps that follow from them."""

from __future__ import annotations

import random

import pytest

from smelt.errors import UsageError
from smelt.operators import contraction, contraction_paths
from smelt.operators.contraction import parse, sizes_of, with_labels_for_ones
from smelt.operators.contraction_paths import find_path
from smelt.operators.contraction_steps import (
    plan_of,
)

EQUATIONS = {
    "ab,bc": ([2, 2], ("a", "c")),
    "ba": ([2], ("a", "b")),
    " a b , b -> a ": ([2, 1], ("a",)),
    "...a,b...->...": ([3, 2], ("...2", "...1")),
    "a...,...": ([3, 1], ("...2", "...1", "a")),
    "->": ([0], ()),
    "ωα,αψ->ωψ": ([2, 2], ("ω", "ψ")),
}


@pytest.mark.parametrize(("text", "case"), EQUATIONS.items(), ids=EQUATIONS)
def test_labels_of_the_result(text: str, case: tuple[list[int], tuple[str, ...]]) -> None:
    assert parse(text, case[0]).out == case[1]


WRONG = {
    "ab,bc->ac": ([2], "does not fit 1 operands"),
    "ab->ab": ([3], "does not fit an operand of 3 dims"),
    "abc->a": ([2], "does not fit an operand of 2 dims"),
    "ab->aa": ([2], "repeats a label"),
    "ij,jk->iz": ([2, 2], "no operand .* has the dim 'z'"),
    "a.b->a": ([2], "is no term"),
    "a->b->c": ([1], "is no term"),
    "...a...->a": ([3], "two ellipses"),
}


@pytest.mark.parametrize(("text", "case"), WRONG.items(), ids=WRONG)
def test_equations_that_cannot_be(text: str, case: tuple[list[int], str]) -> None:
    with pytest.raises(ValueError, match=case[1]):
        parse(text, case[0])


def test_a_size_of_1_repeats() -> None:
    terms = parse("ab,ab->a", [2, 2]).terms
    assert sizes_of(terms, [(1, 3), (4, 1)]) == {"a": 4, "b": 3}
    with pytest.raises(ValueError, match="sizes 3 and 2 of 'b'"):
        sizes_of(terms, [(1, 3), (4, 2)])


def steps(text: str, *shapes: tuple[int, ...]) -> list[tuple[str, str]]:
    equation = with_labels_for_ones(parse(text, [len(shape) for shape in shapes]), shapes)
    sizes = sizes_of(equation.terms, shapes)
    found, _ = plan_of(equation, find_path(equation, sizes), sizes)
    return [(step.op, "".join(step.labels)) for step in found]


PLANS = {
    "ab,bc->ac": ([(2, 3), (3, 4)], [("DotGeneral", "ac")]),
    "ab,bc->ca": ([(2, 3), (3, 4)], [("DotGeneral", "ca")]),
    "xab,xbc->acx": ([(5, 2, 3), (5, 3, 4)], [("DotGeneral", "xac"), ("Transpose", "acx")]),
    "ab->ab": ([(2, 3)], []),
    "ii->": ([(3, 3)], [("Diagonal", "i"), ("Reduce", "")]),
    "abz,bc->ac": ([(2, 3, 9), (3, 4)], [("Reduce", "ab"), ("DotGeneral", "ac")]),
    "ab,ab->ab": ([(2, 1), (2, 3)], [("Squeeze", "a"), ("Combine", "ab")]),
    "ab,a,b->ab": ([(9, 9), (9,), (9,)], [("Combine", "ab"), ("Combine", "ab")]),
    "ax,bx->bax": ([(2, 3), (4, 3)], [("Combine", "bax")]),
    "ax,ba->bax": ([(2, 3), (4, 2)], [("Combine", "bax")]),
    "ax,xb->bax": ([(2, 3), (3, 4)], [("Transpose", "bx"), ("Combine", "bax")]),
    "ab,bc,c->a": ([(9, 9), (9, 9), (9,)], [("DotGeneral", "b"), ("DotGeneral", "a")]),
    "ab,bc,a->abc": ([(2, 3), (3, 4), (2,)], [("Combine", "ab"), ("Combine", "abc")]),
    "bca,abc,a,cab->b": (
        [(3, 4, 2), (2, 3, 4), (2,), (4, 2, 3)],
        [("Transpose", "bca"), ("Combine", "bca"), ("Transpose", "bca"), ("Combine", "bca"), ("DotGeneral", "b")],
    ),
    "c,edc,bce->edb": (
        [(4,), (6, 5, 4), (3, 4, 6)],
        [("Transpose", "ecb"), ("Combine", "ecb"), ("DotGeneral", "edb")],
    ),
    "cdb,eab,ebc,bda->cbe": (
        [(4, 5, 3), (6, 2, 3), (6, 3, 4), (3, 5, 2)],
        [("DotGeneral", "bca"), ("DotGeneral", "bce"), ("Transpose", "cbe"), ("Transpose", "cbe"), ("Combine", "cbe")],
    ),
    "bac,abe,d,ea->ec": (
        [(3, 2, 4), (2, 3, 6), (5,), (6, 2)],
        [("Reduce", ""), ("Combine", "ea"), ("Transpose", "eba"), ("Combine", "eba"), ("DotGeneral", "ec")],
    ),
    "e,eca,cdb,aed->": (
        [(6,), (6, 4, 2), (4, 5, 3), (2, 6, 5)],
        [("Reduce", "cd"), ("Transpose", "cae"), ("Combine", "cae"), ("DotGeneral", "cd"), ("DotGeneral", "")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "case"), PLANS.items(), ids=PLANS)
def test_steps(text: str, case: tuple[list[tuple[int, ...]], list[tuple[str, str]]]) -> None:
    assert steps(text, *case[0]) == case[1]


CHAIN = ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)])
PATHS = {
    "no path finder": ("quickest", None, "no path finder"),
    "one operand twice": ([(0, 0), (0, 1)], None, "does not name two"),
    "operands left": ([(0, 1)], None, "leaves 2"),
    "memory": ("auto", 1, "at most 1 elements"),
}


@pytest.mark.parametrize(("optimize", "limit", "why"), PATHS.values(), ids=PATHS)
def test_paths_that_cannot_be(optimize: object, limit: int | None, why: str) -> None:
    equation = parse(CHAIN[0], [2, 2, 2])
    with pytest.raises(UsageError, match=why) as caught:
        find_path(equation, sizes_of(equation.terms, CHAIN[1]), optimize, limit)
    assert caught.value.code == "E658"


def test_a_path_may_be_given() -> None:
    equation = parse(CHAIN[0], [2, 2, 2])
    assert find_path(equation, sizes_of(equation.terms, CHAIN[1]), [[1, 2], [0, 1]]) == (
        (1, 2),
        (0, 1),
    )


def test_costly_paths_are_sought_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two states with two operators between them, where each site meets four tensors; the global
    state of ``random`` is what it was."""
    sites = range(6)
    labels = {kind: [f"{kind}{i}" for i in range(7)] for kind in "abcdpqr"}
    rows = (("a", "p"), ("b", "pq"), ("c", "qr"), ("d", "r"))
    terms = tuple(
        (*(labels[kind][i] for kind in inner), labels[bond][i], labels[bond][i + 1])
        for i in sites
        for bond, inner in rows
    )
    sizes = {name: 8 if name[0] in "ad" else 3 for group in labels.values() for name in group}
    out = (labels["a"][0], labels["d"][6])
    equation = contraction.Equation(terms, out)
    quick = find_path(equation, sizes)
    monkeypatch.setattr(contraction_paths, "FEW_PRODUCTS", 0)
    state = random.getstate()
    thorough = find_path(equation, sizes)
    assert random.getstate() == state
    least, most = (
        contraction_paths._count_products(path, equation, sizes) for path in (thorough, quick)
    )
    assert least < most
