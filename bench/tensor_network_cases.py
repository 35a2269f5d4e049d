"""The tensor networks that ``bench.contractions`` measures: equations and shapes, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from opt_einsum import get_symbol


@dataclass(frozen=True)
class Case:
    """A contraction: its equation, the shapes of its operands, their element type, and the most
    elements of an intermediate result.
    """

    equation: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str = "float32"
    limit: int | None = None


def of_sizes(equation: str, sizes: dict[str, int] | int, dtype: str = "float32") -> Case:
    """Each label with its size, or all with one."""
    terms = equation.partition("->")[0].split(",")
    given = sizes if isinstance(sizes, dict) else dict.fromkeys("".join(terms), sizes)
    return Case(equation, tuple(tuple(given[label] for label in term) for term in terms), dtype)


def _network(terms: list[list[int]], out: list[int], sizes: dict[int, int], dtype: str) -> Case:
    texts = ["".join(map(get_symbol, term)) for term in terms]
    equation = ",".join(texts) + "->" + "".join(map(get_symbol, out))
    return Case(equation, tuple(tuple(sizes[i] for i in term) for term in terms), dtype)


def mps_inner(length: int, bond: int, dtype: str = "float32") -> Case:
    """The inner product of two matrix product states, sites of size 2."""
    terms: list[list[int]] = []
    sizes: dict[int, int] = {}
    for side in range(2):
        for site in range(length):
            site_label = site
            left, right = (length * (1 + side) + site + step for step in (-1, 0))
            sizes |= {site_label: 2, left: bond, right: bond}
            term = [left] if site else []
            terms.append([*term, site_label, *([right] if site < length - 1 else [])])
    return _network(terms, [], sizes, dtype)


def lattice(rows: int, columns: int, bond: int, dtype: str = "float32", physical: int = 0) -> Case:
    """A square lattice; with ``physical`` sizes, the norm of a PEPS of two layers."""
    layers = 2 if physical else 1
    terms: list[list[int]] = []
    sizes: dict[int, int] = {}
    labels: dict[object, int] = {}

    def label(key: object, size: int) -> int:
        number = labels.setdefault(key, len(labels))
        sizes[number] = size
        return number

    for layer in range(layers):
        for i in range(rows):
            for j in range(columns):
                term = [label(("site", i, j), physical)] if physical else []
                term += [
                    label((layer, "h", i, k), bond) for k in (j - 1, j) if 0 <= k < columns - 1
                ]
                term += [label((layer, "v", k, j), bond) for k in (i - 1, i) if 0 <= k < rows - 1]
                terms.append(term)
    return _network(terms, [], sizes, dtype)


def random_regular(count: int, degree: int, size: int, dtype: str = "float32") -> Case:
    """Operands that each share ``degree`` dims with others, at random."""
    rng = np.random.default_rng(count)
    while True:
        ends = rng.permutation(np.repeat(np.arange(count), degree)).reshape(-1, 2)
        if (ends[:, 0] != ends[:, 1]).all():
            break
    terms: list[list[int]] = [[] for _ in range(count)]
    for edge, (a, b) in enumerate(ends):
        terms[a].append(edge)
        terms[b].append(edge)
    return _network(terms, [], dict.fromkeys(range(len(ends)), size), dtype)


def graphical(variables: int, size: int, factors: int) -> Case:
    """A graphical model: factors of neighbours in a chain, and of some pairs, on shared labels."""
    rng = np.random.default_rng(variables)
    terms = [[i, i + 1] for i in range(variables - 1)]
    for _ in range(factors):
        start = int(rng.integers(0, variables - 3))
        terms.append([start, start + int(rng.integers(2, 4))])
    terms += [[i] for i in range(0, variables, 3)]
    return _network(terms, [variables // 2], dict.fromkeys(range(variables), size), "float32")


def brickwork(width: int, depth: int, dtype: str) -> Case:
    """The amplitude of a circuit of gates of two qubits."""
    now = list(range(width))
    terms = [[i] for i in now]
    count = width
    for layer in range(depth):
        for i in range(layer % 2, width - 1, 2):
            terms.append([count, count + 1, now[i], now[i + 1]])
            now[i], now[i + 1] = count, count + 1
            count += 2
    terms += [[i] for i in now]
    return _network(terms, [], dict.fromkeys(range(count), 2), dtype)


def chain(length: int, size: int, dtype: str = "float32") -> Case:
    """A product of matrices."""
    terms = [[i, i + 1] for i in range(length)]
    return _network(terms, [0, length], dict.fromkeys(range(length + 1), size), dtype)


def train(length: int, size: int, rank: int) -> Case:
    """A tensor from its train of cores."""
    terms, sizes = [], {}
    for i in range(length):
        sizes |= {i: size, length + i: rank, length + i + 1: rank}
        left = [length + i] if i else []
        terms.append([*left, i, *([length + i + 1] if i < length - 1 else [])])
    return _network(terms, list(range(length)), sizes, "float32")


def tree(depth: int, bond: int) -> Case:
    """The norm of a binary tree of tensors, of two layers that share their leaves."""
    terms: list[list[int]] = []
    leaves = 2**depth
    for layer in range(2):
        base = leaves + layer * 2 * leaves
        for node in range(1, leaves):
            below = [2 * node, 2 * node + 1]
            term = [below_i - leaves if below_i >= leaves else base + below_i for below_i in below]
            terms.append(([base + node] if node > 1 else []) + term)
    labels = {label for term in terms for label in term}
    return _network(terms, [], {i: 2 if i < leaves else bond for i in labels}, "float32")


def _products() -> Iterator[tuple[str, Case]]:
    for n in (8, 32, 128, 256):
        yield f"matmul-{n}", of_sizes("ab,bc->ac", n)
    yield "matmul-128-f64", of_sizes("ab,bc->ac", 128, "float64")
    yield "matmul-c64-64", of_sizes("ab,bc->ac", 64, "complex64")
    yield "matmul-c128-96", of_sizes("ab,bc->ac", 96, "complex128")
    yield "transposed", of_sizes("ba,cb->ca", 96)
    yield "matvec", of_sizes("ab,b->a", 512)
    yield "vecmat", of_sizes("a,ab->b", 512)
    yield "bilinear", of_sizes("a,ab,b->", 256)
    yield "dot", of_sizes("a,a->", 65536)
    yield "bmm-512x16", of_sizes("xab,xbc->xac", {"x": 512, "a": 16, "b": 16, "c": 16})
    yield "bmm-64x32", of_sizes("xab,xbc->xac", {"x": 64, "a": 32, "b": 32, "c": 32})
    yield "bmm-trailing", of_sizes("abx,bcx->acx", {"x": 256, "a": 16, "b": 16, "c": 16})
    yield "bmm-c64", of_sizes("xab,xbc->xac", {"x": 64, "a": 16, "b": 16, "c": 16}, "complex64")
    heads = {"b": 2, "q": 64, "k": 64, "h": 8, "d": 32}
    yield "attention-scores", of_sizes("bqhd,bkhd->bhqk", heads)
    yield "attention-values", of_sizes("bhqk,bkhd->bqhd", heads)
    yield "two-summed", of_sizes("abcd,dcef->abef", 12)
    yield "interleaved", of_sizes("acbd,cedf->aebf", 12)
    yield "shuffled", of_sizes("abcdef,dfbghi->aghcei", 5)
    yield "private-dims", of_sizes("abp,bcq->ac", {"a": 64, "b": 64, "c": 64, "p": 16, "q": 16})
    yield "chain-4-tall", Case("ab,bc,cd,de->ae", ((256, 8), (8, 256), (256, 8), (8, 256)))
    yield "chain-10", chain(10, 32)
    yield "chain-64", chain(64, 8)
    yield "chain-20-c64", chain(20, 16, "complex64")


def _without_sums() -> Iterator[tuple[str, Case]]:
    yield "outer", of_sizes("a,b->ab", 1024)
    yield "outer-3", of_sizes("a,b,c->cab", 64)
    yield "hadamard", of_sizes("ab,ab->ab", 512)
    yield "hadamard-transposed", of_sizes("ab,ba->ab", 512)
    yield "khatri-rao", of_sizes("ax,bx->abx", 64)
    yield "batched-outer", of_sizes("xa,xb->xab", 64)
    yield "scaled", of_sizes("ab,a,b->ab", 256)
    yield "permute-3", of_sizes("abc->cab", 64)
    yield "permute-6", of_sizes("abcdef->fdbeca", 8)
    yield "row-sum", of_sizes("ab->a", 512)
    yield "column-sum", of_sizes("ab->b", 512)
    yield "sum-c64", of_sizes("abc->b", 32, "complex64")


def _diagonals() -> Iterator[tuple[str, Case]]:
    yield "trace", of_sizes("ii->", 512)
    yield "diagonal", of_sizes("ii->i", 512)
    yield "partial-trace", of_sizes("aibi->ab", 24)
    yield "batched-trace", of_sizes("xii->x", {"x": 64, "i": 32})
    yield "trace-of-product", of_sizes("ab,ba->", 256)
    yield "diagonal-of-product", of_sizes("ab,ba->a", 256)
    yield "diagonal-scales", of_sizes("ii,ij->ij", 256)
    yield "trace-c128", of_sizes("iaib->ab", 24, "complex128")


def _networks() -> Iterator[tuple[str, Case]]:
    yield (
        "tucker",
        of_sizes("abc,ai,bj,ck->ijk", {**dict.fromkeys("abc", 8), **dict.fromkeys("ijk", 32)}),
    )
    yield (
        "tucker-projection",
        of_sizes("ijk,ai,bj,ck->abc", {**dict.fromkeys("abc", 8), **dict.fromkeys("ijk", 32)}),
    )
    yield "cp", of_sizes("ar,br,cr->abc", {**dict.fromkeys("abc", 32), "r": 16})
    yield "mttkrp", of_sizes("abc,br,cr->ar", {**dict.fromkeys("abc", 32), "r": 16})
    yield "tensor-train", train(5, 8, 8)
    yield "mps-20", mps_inner(20, 8)
    yield "mps-50", mps_inner(50, 16)
    yield "mps-50-c64", mps_inner(50, 16, "complex64")
    yield "mps-100-f64", mps_inner(100, 12, "float64")
    yield "peps-3x3", lattice(3, 3, 3, physical=2)
    yield "peps-3x4-c64", lattice(3, 4, 2, "complex64", physical=2)
    yield "lattice-5x6", lattice(5, 6, 2)
    yield "lattice-4x4-4", lattice(4, 4, 4)
    yield "lattice-8x8", lattice(8, 8, 2)
    yield "random-20", random_regular(20, 3, 4)
    yield "random-40", random_regular(40, 3, 2)
    yield "random-40-c64", random_regular(40, 3, 2, "complex64")
    yield "graphical-60x3", graphical(60, 3, 20)
    yield "graphical-40x8", graphical(40, 8, 10)
    yield "brickwork-8x6", brickwork(8, 6, "complex64")
    yield "brickwork-12x8", brickwork(12, 8, "float32")
    yield "tree-4", tree(4, 8)


CASES: dict[str, Case] = dict([*_products(), *_without_sums(), *_diagonals(), *_networks()])
