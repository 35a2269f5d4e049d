"""``smelt.compile_einsums``: sums of contractions in one program, each product computed once."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import opt_einsum
import pytest

import smelt
from smelt.errors import SmeltError

SHAPES = [(3, 3), (3, 3), (3, 3), (3,)]
RESULTS: dict[str, list[Any]] = {
    "one term": [("ab,bc->ac", (0, 1))],
    "a commutator": [[("ab,bc->ac", (0, 1)), ("ab,bc->ac", (1, 0), -1)]],
    "several results": [
        ("ab,bc,cd->ad", (0, 1, 2)),
        ("ab,bc,c->a", (0, 1, 3)),
        ("ab,bc->", (0, 1)),
    ],
    "an operand": [("ab->ab", (0,)), ("ab->ba", (0,)), ("aa->", (0,)), ("aa->a", (0,))],
    "a result twice": [("ab,bc->ac", (0, 1)), ("xy,yz->xz", (0, 1)), [("ab->ab", (0,))]],
    "an operand twice": [("ab,bc,cd->ad", (0, 0, 0)), ("ab,cb->ac", (0, 0)), ("ab,ab->", (0, 0))],
    "transposed": [("ab,bc->ac", (0, 1)), ("ab,bc->ca", (0, 1)), ("ba,bc->ac", (0, 1))],
    "a diagonal": [[("aab,b->a", (4, 3), 2), ("ab,b->a", (0, 3), -0.5), ("a->a", (3,), 3)]],
    "broadcast": [("...b,bc->...c", (5, 0)), ("ab,b->a", (5, 3))],
    "empty": [[("ab,bc->ac", (6, 7)), ("ab->ab", (0,), 0)]],
}


def arrays_of(dtype: str) -> list[np.ndarray]:
    """Operands of all results: matrices, a vector, one of three dims, a row, empty ones."""
    rng = np.random.default_rng(0)
    shapes = [*SHAPES, (3, 3, 3), (1, 3), (3, 0), (0, 3)]
    real = [rng.integers(-4, 5, shape).astype(dtype) for shape in shapes]
    return [x + 1j * x[::-1] for x in real] if np.dtype(dtype).kind == "c" else real


def expected(result: Any, arrays: list[np.ndarray]) -> np.ndarray:
    """Return a result, its terms one by one."""
    terms = [result] if isinstance(result, tuple) else result
    return sum(  # type: ignore[return-value]
        (factor[0] if factor else 1) * np.einsum(equation, *(arrays[n] for n in numbers))
        for equation, numbers, *factor in terms
    )


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i4"])
@pytest.mark.parametrize("name", RESULTS)
def test_results_are_those_of_numpy(name: str, dtype: str) -> None:
    results, arrays = RESULTS[name], arrays_of(dtype)
    if dtype == "i4":
        results = [r for r in results if "-0.5" not in str(r)]
    if not results:
        return
    artifact = smelt.compile_einsums(results, arrays, dtype, engine="numpy")
    for found, result in zip(artifact(*arrays), results, strict=True):
        np.testing.assert_allclose(found, expected(result, arrays), rtol=1e-5)
        assert found.dtype == np.dtype(dtype)


@pytest.mark.parametrize(
    "target",
    [{"engine": "native"}, pytest.param({"target": "onnx"}, marks=pytest.mark.slow)],
)
def test_on_other_targets(target: dict[str, str]) -> None:
    results, arrays = [each for name in RESULTS for each in RESULTS[name]], arrays_of("f4")
    artifact = smelt.compile_einsums(results, arrays, **target)
    for found, result in zip(artifact(*arrays), results, strict=True):
        np.testing.assert_allclose(found, expected(result, arrays), rtol=1e-4, atol=1e-4)


def test_a_complex_factor() -> None:
    arrays = arrays_of("c16")
    results = [[("ab,bc->ac", (0, 1), 2 - 3j), ("ab->ab", (2,), 1j)]]
    artifact = smelt.compile_einsums(results, arrays, "c16", engine="numpy")
    np.testing.assert_allclose(artifact(*arrays)[0], expected(results[0], arrays))


def chain(sites: int) -> tuple[list[list[Any]], list[tuple[int, ...]]]:
    """The energy of each site of a chain: bra and ket of each site, and one operator."""
    results, shapes = [], list[tuple[int, ...]]()
    for site in range(sites):
        left, right = (1 if site == 0 else 6), (1 if site == sites - 1 else 6)
        shapes.append((left, 2, right))
    shapes += [(2, 2)] * sites

    def name(kind: str, place: int) -> str:
        return chr(0x400 + 200 * "lmpq".index(kind) + place)

    for own in range(sites):
        terms, numbers = [], []
        for site in range(sites):
            physical = name("q", site) if site == own else name("p", site)
            terms.append(name("l", site) + name("p", site) + name("l", site + 1))
            terms.append(name("m", site) + physical + name("m", site + 1))
            numbers += [site, site]
        ends = (name("l", 0), name("m", 0), name("l", sites), name("m", sites))
        assert len(set(ends)) == 4
        terms.append(name("p", own) + name("q", own))
        numbers.append(sites + own)
        results.append([(",".join(terms) + "->", tuple(numbers))])
    return results, shapes


@pytest.mark.parametrize("sites", [8, pytest.param(16, marks=pytest.mark.slow)])
def test_energies_of_all_sites_share_their_environments(sites: int) -> None:
    """The share of the costs that remains falls with the number of sites."""
    results, shapes = chain(sites)
    artifact = smelt.compile_einsums(results, shapes, "f8", engine="numpy")
    assert artifact.sharing.flops < artifact.sharing.flops_alone / (sites / 2.5)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    for found, ((equation, numbers),) in zip(artifact(*arrays), results, strict=True):
        wanted = opt_einsum.contract(equation, *(arrays[n] for n in numbers))
        np.testing.assert_allclose(found, wanted, rtol=1e-8)


def test_a_product_of_several_terms_is_computed_once() -> None:
    results = [("ab,bc,cd->ad", (0, 1, 2)), ("xy,yz,z->x", (0, 1, 3)), ("ab,bc->ca", (0, 1))]
    artifact = smelt.compile_einsums(
        results, SHAPES, optimize=lambda inputs, *_: [(0, 1)] * (len(inputs) - 1), engine="numpy"
    )
    # ab,bc->ac; its products with 2 and with 3; ab,bc->ca, which is another layout.
    assert artifact.sharing.products == 4
    assert artifact.sharing.flops_alone - artifact.sharing.flops == 2 * 27


def test_sizes_may_have_names() -> None:
    artifact = smelt.compile_einsums(
        [[("ab,bc->ac", (0, 1)), ("ac->ac", (2,))]], [("N", 3), (3, 2), ("N", 2)], engine="numpy"
    )
    for size in (1, 4):
        x, y, z = np.ones((size, 3), "f4"), np.ones((3, 2), "f4"), np.ones((size, 2), "f4")
        np.testing.assert_allclose(artifact(x, y, z)[0], x @ y + z)


def test_it_can_be_pickled() -> None:
    arrays = arrays_of("f4")
    artifact = smelt.compile_einsums(RESULTS["a commutator"], arrays, engine="numpy")
    again = pickle.loads(pickle.dumps(artifact))
    assert again.sharing == artifact.sharing
    np.testing.assert_array_equal(again(*arrays)[0], artifact(*arrays)[0])


WRONG: dict[str, tuple[str, Any]] = {
    "no result": ("E699", []),
    "an empty sum": ("E699", [[]]),
    "no list": ("E699", 3),
    "a number": ("E699", [3]),
    "no operands": ("E699", [("ab", ())]),
    "no such operand": ("E699", [("ab->a", (9,))]),
    "a negative operand": ("E699", [("ab->a", (-1,))]),
    "operands that are no numbers": ("E699", [("ab->a", "x")]),
    "one operand, not in a list": ("E699", [("ab->a", 0)]),
    "too many parts": ("E699", [("ab->a", (0,), 1, 2)]),
    "a text as factor": ("E699", [("ab->a", (0,), "x")]),
    "a complex factor": ("E699", [("ab->a", (0,), 1j)]),
    "an array as factor": ("E699", [("ab->a", (0,), [1, 2])]),
    "an equation": ("E655", [("ab,bc->ac", (0,))]),
    "two shapes": ("E656", [[("ab->a", (0,)), ("ab->ab", (0,))]]),
    "two sizes": ("E656", [[("ab->a", (4,)), ("a->a", (3,))]]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_sum_is_refused(name: str) -> None:
    code, results = WRONG[name]
    with pytest.raises(SmeltError) as caught:
        smelt.compile_einsums(results, [*SHAPES, (5, 2)])
    assert caught.value.code == code
