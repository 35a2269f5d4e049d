"""``optimize=`` takes every finder of opt_einsum and cotengra, paths, and contraction trees."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import opt_einsum
import pytest

import smelt
from smelt.errors import UsageError

EQUATION = "abx,bcx,cdx,dae->xe"
SHAPES = [(3, 4, 5), (4, 6, 5), (6, 2, 5), (2, 3, 7)]


def arrays_of(shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) for shape in shapes]


def check(optimize: Any, limit: int | None = None) -> smelt.Artifact:
    arrays = arrays_of(SHAPES)
    artifact = smelt.compile_einsum(
        EQUATION, SHAPES, np.float64, optimize=optimize, memory_limit=limit, engine="numpy"
    )
    expected = np.einsum(EQUATION, *arrays, optimize=True)
    np.testing.assert_allclose(artifact(*arrays)[0], expected, rtol=1e-9)
    return artifact


def three_arguments(inputs: Any, out: Any, sizes: Any) -> Any:
    return opt_einsum.paths.greedy(inputs, out, sizes)


OWN = {
    "True of NumPy": True,
    "False of NumPy": False,
    "None": None,
    "a path of NumPy": np.einsum_path(EQUATION, *arrays_of(SHAPES), optimize="optimal")[0],
    "a step with three operands": [(0, 1, 2), (0, 1)],
    "a step with one operand": [(0,), (0, 1), (2,), (0, 1), (0, 1)],
    "an object of opt_einsum": opt_einsum.RandomGreedy(max_repeats=4),
    "a function without a limit": three_arguments,
}


@pytest.mark.parametrize("limit", [None, 12])
@pytest.mark.parametrize("optimize", OWN.values(), ids=OWN)
def test_paths_and_finders_are_taken(optimize: Any, limit: int | None) -> None:
    if limit and not isinstance(optimize, list):
        check(optimize, limit)
    elif not limit:
        check(optimize)


def test_one_operand_may_have_the_path_of_opt_einsum() -> None:
    (array,) = arrays_of([(2, 3, 3)])
    path = opt_einsum.contract_path("bii->b", array)[0]
    (found,) = smelt.compile_einsum("bii->b", [array], np.float64, optimize=path)(array)
    np.testing.assert_allclose(found, np.einsum("bii->b", array))


def fails(*_: Any) -> Any:
    raise KeyError("tree")


WRONG = {
    "a finder that fails": (fails, "KeyError: 'tree'"),
    "an operand twice": ([(0, 0), (0, 1), (0, 1)], "numbered from 0"),
    "no operand": ([(0, 9), (0, 1), (0, 1)], "numbered from 0"),
    "too short": ([(0, 1)], "contracts all operands"),
    "words": (["greedy"], "pair of whole numbers"),
}


@pytest.mark.parametrize(("optimize", "why"), WRONG.values(), ids=WRONG)
def test_what_is_no_path_has_a_code(optimize: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        smelt.compile_einsum(EQUATION, SHAPES, optimize=optimize)
    assert caught.value.code == "E658"


def cotengra() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(
            "cotengra", reason="needs pip install 'smelt-compiler[networks]'"
        )


def hyper(**options: Any) -> dict[str, Any]:
    return {"max_repeats": 4, "parallel": False, "methods": ["greedy"], **options}


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "HyperOptimizer": lambda c: c.HyperOptimizer(**hyper()),
    "HyperOptimizer in slices": lambda c: c.HyperOptimizer(
        **hyper(slicing_opts={"target_slices": 3})
    ),
    "ReusableHyperOptimizer": lambda c: c.ReusableHyperOptimizer(**hyper()),
    "AutoOptimizer": lambda c: c.AutoOptimizer(),
    "GreedyOptimizer": lambda c: c.GreedyOptimizer(),
    "OptimalOptimizer": lambda c: c.OptimalOptimizer(),
    "RandomOptimizer": lambda c: c.RandomOptimizer(seed=1),
    "RandomGreedyOptimizer": lambda c: c.RandomGreedyOptimizer(max_repeats=4, parallel=False),
    "hyper-greedy": lambda c: "hyper-greedy",
    "edgesort": lambda c: "edgesort",
    "a tree": lambda c: tree(c).copy(),
    "a tree in slices": lambda c: tree(c).slice(target_slices=4),
}


def tree(c: Any) -> Any:
    """The labels of this tree are not those of the equation."""
    terms = [tuple(term) for term in EQUATION.split("->", maxsplit=1)[0].split(",")]
    return c.array_contract_tree(terms, ("x", "e"), shapes=SHAPES, optimize="greedy")


@pytest.mark.parametrize("limit", [None, 12])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_optimizers_of_cotengra(name: str, limit: int | None) -> None:
    artifact = check(OPTIMIZERS[name](cotengra()), limit)
    assert bool(artifact.network.sliced) == (limit is not None or "slices" in name)


def test_a_tree_may_be_sliced_over_a_dim_of_the_result() -> None:
    with_slices = tree(cotengra())
    label = with_slices.inputs[0][2]
    with_slices.remove_ind_(label)
    assert check(with_slices).network.sliced == {"x": 5}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("equation", ["aab,bc,,b->c", "...ab,...bc,cd->...ad", "ωα,αψ,ψχ->ωχ"])
def test_cotengra_takes_labels_of_every_kind(equation: str) -> None:
    cotengra()
    shapes = {
        "aab,bc,,b->c": [(2, 2, 3), (3, 4), (), (3,)],
        "...ab,...bc,cd->...ad": [(2, 1, 3, 4), (5, 4, 3), (3, 2)],
        "ωα,αψ,ψχ->ωχ": [(2, 3), (3, 4), (4, 5)],
    }[equation]
    arrays = arrays_of(shapes)
    (found,) = smelt.compile_einsum(equation, shapes, np.float64, optimize="hyper-greedy")(*arrays)
    np.testing.assert_allclose(found, opt_einsum.contract(equation, *arrays), rtol=1e-9)


def test_a_tree_of_another_network_is_refused() -> None:
    c = cotengra()
    other = c.ContractionTree.from_path(
        ["abx", "bcx", "cdx", "dae"], "xe", dict(zip("abcdex", (3, 4, 6, 2, 7, 6), strict=True)),
        path=[(0, 1), (0, 1), (0, 1)],
    )  # fmt: skip
    for wrong in (other, c.ContractionTree.from_path(["ab"], "a", {"a": 3, "b": 2}, path=[])):
        with pytest.raises(UsageError, match="that of another network") as caught:
            smelt.compile_einsum(EQUATION, SHAPES, optimize=wrong)
        assert caught.value.code == "E658"
