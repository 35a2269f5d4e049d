"""Tensor networks at random, of the families that ``tensor_network_cases`` has by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from opt_einsum import contract_path, get_symbol

from bench.tensor_network_cases import (
    Case,
    brickwork,
    chain,
    graphical,
    lattice,
    mps_inner,
    of_sizes,
    random_regular,
)

MOST_FLOPS, MOST_ELEMENTS = 3e8, 1 << 22
"""Multiplications of a network, and elements of its operands and results: what takes a while at
most, so that many can be measured."""


def drawn(count: int, seed: int) -> Mapping[str, Case]:
    """So many networks by name, each family in turn; those that are too large are drawn again."""
    rng = np.random.default_rng(seed)
    cases: dict[str, Case] = {}
    while len(cases) < count:
        family = list(FAMILIES)[len(cases) % len(FAMILIES)]
        case = FAMILIES[family](rng)
        if _is_moderate(case):
            cases[f"{family}-{len(cases)}"] = case
    return cases


def _is_moderate(case: Case) -> bool:
    if max(int(np.prod(shape)) for shape in case.shapes) > MOST_ELEMENTS:
        return False
    _, told = contract_path(case.equation, *case.shapes, shapes=True, optimize="auto")
    return bool(told.opt_cost < MOST_FLOPS and told.largest_intermediate < MOST_ELEMENTS)


def _number(rng: np.random.Generator, low: int, high: int) -> int:
    """From ``low`` to ``high``, each doubling as likely."""
    return int(np.exp2(rng.uniform(np.log2(low), np.log2(high + 1))))


def _dtype(rng: np.random.Generator) -> str:
    return str(rng.choice(["float32", "float32", "float64", "complex64", "complex128"]))


def _labels(rng: np.random.Generator, labels: str) -> str:
    return "".join(str(label) for label in rng.permutation(list(labels)))


def _sized(rng: np.random.Generator, equation: str, low: int, high: int, dtype: str) -> Case:
    labels = sorted(set(equation) - set(",->"))
    return of_sizes(equation, {label: _number(rng, low, high) for label in labels}, dtype)


def _pair(rng: np.random.Generator) -> Case:
    """Two operands: dims of batch, summed and free ones, in any order."""
    batch, summed = "ab"[: rng.integers(0, 3)], "kl"[: rng.integers(1, 3)]
    left, right = "mn"[: rng.integers(0, 3)], "xy"[: rng.integers(0, 3)]
    terms = (_labels(rng, batch + summed + side) for side in (left, right))
    return _sized(
        rng, f"{','.join(terms)}->{_labels(rng, batch + left + right)}", 3, 64, _dtype(rng)
    )


def _elementwise(rng: np.random.Generator) -> Case:
    """Nothing is summed: outer products, products element by element, and between."""
    every = "abcd"[: rng.integers(2, 5)]
    terms = [
        _labels(rng, "".join(label for label in every if rng.random() < 0.7) or every[0])
        for _ in range(rng.integers(2, 5))
    ]
    out = _labels(rng, "".join(sorted(set("".join(terms)))))
    return _sized(rng, f"{','.join(terms)}->{out}", 4, 64, _dtype(rng))


def _diagonal(rng: np.random.Generator) -> Case:
    """A dim that an operand has twice, in a product or alone."""
    terms = [_labels(rng, "aab"), *(("bc", "ac", "c")[: rng.integers(0, 4)])]
    known = "".join(sorted(set("".join(terms))))
    out = "".join(label for label in known if rng.random() < 0.5)
    return _sized(rng, f"{','.join(terms)}->{out}", 8, 128, _dtype(rng))


def _hyperedges(rng: np.random.Generator) -> Case:
    """Dims that any number of operands share."""
    labels = [get_symbol(i) for i in range(rng.integers(5, 16))]
    terms = [
        "".join(rng.choice(labels, size=int(rng.integers(1, 4)), replace=False))
        for _ in range(rng.integers(5, 25))
    ]
    known = sorted(set("".join(terms)))
    out = "".join(rng.choice(known, size=int(rng.integers(0, 3)), replace=False))
    return _sized(rng, f"{','.join(terms)}->{out}", 2, 12, _dtype(rng))


def _attention(rng: np.random.Generator) -> Case:
    """Scores, or values, or both, with dims of heads in any place."""
    sizes = {"b": _number(rng, 1, 4), "h": _number(rng, 2, 12)}
    sizes |= {"q": _number(rng, 16, 128), "k": _number(rng, 16, 128), "d": _number(rng, 8, 64)}
    terms = [_labels(rng, "bqhd"), _labels(rng, "bkhd")]
    equation = (f"{terms[0]},{terms[1]}->bhqk", f"{_labels(rng, 'bhqk')},{terms[1]}->bqhd")
    return of_sizes(str(rng.choice(equation)), sizes, "float32")


def _tucker(rng: np.random.Generator) -> Case:
    """A core times a factor for each of its dims, to or from the small side."""
    order = int(rng.integers(3, 5))
    core, wide = "abcd"[:order], "wxyz"[:order]
    factors = ",".join(f"{a}{b}" for a, b in zip(core, wide, strict=True))
    sizes = {label: _number(rng, 2, 8) for label in core}
    sizes |= {label: _number(rng, 8, 24) for label in wide}
    here, there = (core, wide) if rng.random() < 0.5 else (wide, core)
    return of_sizes(f"{here},{factors}->{there}", sizes, _dtype(rng))


FAMILIES: Mapping[str, Callable[[np.random.Generator], Case]] = {
    "pair": _pair,
    "mps": lambda rng: mps_inner(_number(rng, 4, 60), _number(rng, 2, 32), _dtype(rng)),
    "elementwise": _elementwise,
    "lattice": lambda rng: lattice(
        _number(rng, 2, 6), _number(rng, 2, 8), _number(rng, 2, 4), _dtype(rng)
    ),
    "peps": lambda rng: lattice(
        _number(rng, 2, 3), _number(rng, 2, 4), _number(rng, 2, 3), _dtype(rng), physical=2
    ),
    "tucker": _tucker,
    "diagonal": _diagonal,
    "hyperedges": _hyperedges,
    "attention": _attention,
    "graphical": lambda rng: graphical(_number(rng, 6, 60), _number(rng, 2, 8), _number(rng, 2, 8)),
    "regular": lambda rng: random_regular(
        2 * _number(rng, 4, 20), 3, _number(rng, 2, 4), _dtype(rng)
    ),
    "chain": lambda rng: chain(_number(rng, 3, 30), _number(rng, 4, 64), _dtype(rng)),
    "circuit": lambda rng: brickwork(
        2 * _number(rng, 2, 5), _number(rng, 2, 6), str(rng.choice(["complex64", "complex128"]))
    ),
}
"""What draws a network, by family: thirteen, so that each has five of 65."""
