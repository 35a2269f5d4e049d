"""``optimize=`` takes every finder of opt_einsum and cotengra, paths, and contraction trees."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import opt_einsum
import pytest

import smelt
from smelt.errors import UsageError
from smelt.operators import contraction_finders
from smelt.operators.contraction_finders import COTENGRA_FINDERS

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
    "an object that fails for a limit": opt_einsum.DynamicProgramming(),
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


def test_the_finders_of_cotengra_are_known() -> None:
    """Their names have a fix that says what to install, also where cotengra is missing."""
    interface = pytest.importorskip("cotengra.interface")
    from opt_einsum import paths

    cotengra()
    own = {"auto", "auto-hq", "dp", "dynamic-programming", "eager", "greedy", "opportunistic"}
    own |= {"optimal", "random-greedy", "random-greedy-128"}
    names = {*interface._PRESETS_PATH, *map(str, paths._PATH_OPTIONS)}
    assert {name for name in names if not name.startswith("branch")} == own | {*COTENGRA_FINDERS}


@pytest.mark.parametrize("name", COTENGRA_FINDERS)
def test_a_finder_of_cotengra_says_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contraction_finders, "find_spec", lambda package: None)
    monkeypatch.setattr("opt_einsum.paths._PATH_OPTIONS", {"auto": None})
    with pytest.raises(UsageError, match=r"cotengra.*not installed") as caught:
        contraction_finders.finder_named(name)
    assert caught.value.fix == "pip install 'smelt-compiler[networks]'"


@pytest.mark.parametrize(
    ("name", "similar"),
    [("branch-3", "branch-2"), ("quickbb", "quickbb-10"), ("hyper-metis", "hyper"), ("", "auto")],
)
def test_a_name_of_no_finder_brings_similar_names(name: str, similar: str) -> None:
    with pytest.raises(UsageError, match="E658 no path finder is named") as caught:
        check(name)
    assert similar in caught.value.fix


FLOWCUTTER = """import sys
lines = sys.stdin.read().splitlines()
count = int(lines[0].split()[2])
print(f"s td 2 {count} {count}")
print("b 1", *range(1, count + 1))
print("b 2 1")
print("1 2", end="")
"""
QUICKBB = """import sys
name = sys.argv[sys.argv.index("--cnffile") + 1]
count = int(open(name).readline().split()[2])
print("Treewidth= 3")
print(*range(1, count + 1))
"""


@pytest.mark.parametrize(
    ("name", "program", "text"),
    [
        ("flowcutter-2", "flow_cutter_pace17", FLOWCUTTER),
        ("quickbb-2", "quickbb_64", QUICKBB),
    ],
)
def test_finders_with_a_program_of_their_own(
    name: str, program: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each writes its output in the form of the real program: two bags, or one order."""
    cotengra()
    pytest.importorskip("networkx", reason="cotengra needs it for these finders")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=f"{program} is not installed") as caught:
        check(name)
    assert program in caught.value.fix
    file = tmp_path / program
    file.write_text(f"#!{sys.executable}\n{text}")
    file.chmod(0o755)
    for limit in (None, 12):
        check(name, limit)


@pytest.mark.parametrize(
    ("error", "told", "why", "fix"),
    [
        (KeyError("tree"), ["Trial error: No module named 'igraph'. Set x"], "igraph", "igraph"),
        (KeyError("tree"), ["Trial error: bad. Set x"], "Trial error: bad", "another finder"),
        (ValueError("odd"), [], "ValueError: odd", "another finder"),
    ],
)
def test_the_error_behind_a_failed_finder_is_told(
    error: Exception, told: list[str], why: str, fix: str
) -> None:
    found = contraction_finders._failed("a finder", error, told)
    assert why in found.why
    assert fix in found.fix


@pytest.mark.parametrize("name", ["hyper-betweenness", "hyper-kahypar"])
def test_a_method_whose_package_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """cotengra tells nothing but a KeyError, as its trials run in other processes."""
    monkeypatch.setattr(contraction_finders, "find_spec", lambda package: None)
    found = contraction_finders._failed(name, KeyError("tree"), [])
    assert found.fix == f"pip install {'igraph' if 'between' in name else 'kahypar'}"
