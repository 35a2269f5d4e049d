"""``memory_limit`` of ``smelt.compile_einsum``: slices where no path keeps to it, else a refusal."""

from __future__ import annotations

import pickle
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import opt_einsum
import pytest

import smelt
from smelt.errors import UsageError
from smelt.networks import checkpoints
from smelt.operators.contraction import parse, sizes_of
from smelt.operators.contraction_slices import Slices
from smelt.operators.contraction_slices import slices_of as slices_of_network

SQUARES = [(6, 6, 6, 6)] * 3
CASES = {
    "ring": ("ab,bc,ca->", [(8, 8)] * 3, 16),
    "ring of four dims": ("abcd,cdef,efab->", SQUARES, 40),
    "one element": ("abcd,cdef,efab->", [(2,) * 4] * 3, 1),
    "with a result": ("iab,ibc,ca->i", [(4, 6, 6), (4, 6, 6), (6, 6)], 40),
    "dims of the result": ("abx,bcx,cdx->adx", [(8, 8, 8)] * 3, 16),
    "dims of the result, out of order": ("abx,bcy,cdx->dyxa", [(3, 4, 5), (4, 6, 2), (6, 3, 5)], 4),
    "no sum at all": ("ab,cd,ae->dbcea", [(3, 4), (5, 2), (3, 2)], 4),
    "a dim of the result twice in an operand": ("aab,bc,cd->ad", [(3, 3, 4), (4, 5), (5, 6)], 3),
    "diagonal": ("aab,bc,cad->d", [(6, 6, 6), (6, 6), (6, 6, 6)], 40),
}


def operands(shapes: list[tuple[int, ...]], dtype: type = np.float64) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    return [x + 1j * x[::-1] if x.dtype.kind == "c" else x for x in arrays]


def largest(artifact: smelt.Artifact) -> int:
    """Elements of the largest result in between, forms of an operand and the result left out."""
    part = prod(int(str(artifact.network.sizes[n])) for n in artifact.network.slices.equation.out)
    return max(
        (
            elements
            for each in programs_in(artifact.plan.steps)
            for step in each.instructions
            if step.op not in ("Reshape", "Transpose", "Loop")
            for slot in step.outputs
            if (elements := prod(int(str(dim)) for dim in each.slots[slot].shape)) != part
        ),
        default=0,
    )


def programs_in(program: Any) -> list[Any]:
    """The innermost programs of a loop, or the program itself."""
    bodies = [body.program for body in program.bodies]
    return [inner for body in bodies for inner in programs_in(body)] or [program]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize(("equation", "shapes", "limit"), CASES.values(), ids=CASES)
def test_results_are_right_and_as_small_as_asked(
    equation: str, shapes: list[tuple[int, ...]], limit: int, dtype: type
) -> None:
    arrays = operands(shapes, dtype)
    artifact = smelt.compile_einsum(equation, shapes, dtype, memory_limit=limit, engine="numpy")
    expected = opt_einsum.contract(equation, *arrays)
    np.testing.assert_allclose(artifact(*arrays)[0], expected, rtol=1e-9)
    if dtype is np.float64:
        assert largest(artifact) <= limit


@pytest.mark.parametrize(
    "target",
    [
        {"engine": "native"},
        pytest.param({"target": "onnx"}, marks=pytest.mark.slow),
        pytest.param({"target": "c"}, marks=pytest.mark.slow),
    ],
)
def test_on_other_targets(target: dict[str, str]) -> None:
    equation, shapes, limit = CASES["with a result"]
    arrays = operands(shapes, np.float32)
    artifact = smelt.compile_einsum(equation, shapes, memory_limit=limit, **target)
    expected = opt_einsum.contract(equation, *arrays)
    np.testing.assert_allclose(artifact(*arrays)[0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("semiring", ["max_plus", "min_max", "log_sum_exp"])
def test_over_semirings(semiring: str) -> None:
    equation, shapes, limit = CASES["ring"]
    arrays = operands(shapes, np.float32)
    whole, sliced = (
        smelt.compile_einsum(equation, shapes, semiring=semiring, engine="numpy", **options)
        for options in ({}, {"memory_limit": limit})
    )
    assert sliced.plan.steps.bodies
    assert not whole.plan.steps.bodies
    np.testing.assert_allclose(sliced(*arrays)[0], whole(*arrays)[0], rtol=1e-5)


def slices_of(equation: str, shapes: list[tuple[int, ...]], limit: int, **options: str) -> Slices:
    parsed = parse(equation, [len(shape) for shape in shapes])
    return slices_of_network(
        parsed, sizes_of(parsed.terms, shapes), options.get("optimize", "auto"), limit
    )


def test_a_path_that_fits_is_not_sliced() -> None:
    assert slices_of("ab,bc,cd->ad", [(8, 8)] * 3, 64).labels == ()
    assert slices_of("ab,b->a", [(8, 8), (8,)], 1).labels == ()


def test_the_label_that_helps_most_is_sliced() -> None:
    found = slices_of("abx,bcx,cax->", [(4, 4, 9)] * 3, 16)
    assert found.labels == ("x",)
    assert str(found.equation) == "ab,bc,ca->"


REFUSED = {
    "sizes that have names": ("ab,bc,ca->", [("N", 8), (8, 8), (8, "N")], 4, "known sizes"),
    "no number": ("ab,bc->ac", [(2, 2)] * 2, 0, "is not a number"),
}


@pytest.mark.parametrize(("equation", "shapes", "limit", "why"), REFUSED.values(), ids=REFUSED)
def test_networks_that_cannot_be_sliced_are_refused(
    equation: str, shapes: list, limit: int, why: str
) -> None:
    with pytest.raises(UsageError, match=f"(?s)E658.*{why}"):
        smelt.compile_einsum(equation, shapes, memory_limit=limit)


def test_finders_are_taken_as_such() -> None:
    equation, shapes, _ = CASES["ring of four dims"]
    arrays = operands(shapes)

    def finder(*given: Any) -> Any:
        return opt_einsum.RandomGreedy(max_repeats=4)(*given)

    for limit in (None, 40):
        artifact = smelt.compile_einsum(
            equation, shapes, np.float64, optimize=finder, memory_limit=limit, engine="numpy"
        )
        expected = opt_einsum.contract(equation, *arrays)
        np.testing.assert_allclose(artifact(*arrays)[0], expected, rtol=1e-9)


def test_paths_of_a_custom_finder_are_checked() -> None:
    with pytest.raises(UsageError, match="E658"):
        smelt.compile_einsum("ab,bc,cd->ad", [(2, 2)] * 3, optimize=lambda *given: [(0, 7), (0, 1)])


def sliced(dtype: str = "f8", **options: Any) -> tuple[smelt.Artifact, list[np.ndarray]]:
    equation, shapes = "abx,bcy,cdx->dyxa", [(3, 4, 5), (4, 6, 2), (6, 3, 5)]
    artifact = smelt.compile_einsum(equation, shapes, dtype, memory_limit=4, **options)
    return artifact, operands(shapes, np.dtype(dtype).type)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("threads", [1, 3])
def test_slices_are_independent_programs(dtype: str, threads: int) -> None:
    artifact, arrays = sliced(dtype, engine="numpy")
    expected = np.einsum("abx,bcy,cdx->dyxa", *arrays, optimize=True)
    total = len(artifact.slices)
    assert total == artifact.tree.count > 1
    seen: list[tuple[int, int]] = []
    found = artifact.sum_slices(
        arrays, threads=threads, progress=lambda done, of: seen.append((done, of))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert seen == [(done, total) for done in range(1, total + 1)]
    again = pickle.loads(pickle.dumps(artifact))
    for number in (0, total - 1):
        part = artifact.run_slice(arrays, number)
        np.testing.assert_array_equal(again.run_slice(arrays, number), part)
    np.testing.assert_array_equal(again.sum_slices(arrays), found)


def test_slices_of_a_semiring_and_with_constants() -> None:
    arrays = operands([(6, 5), (5, 4), (4, 6)])
    artifact = smelt.compile_einsum(
        "ab,bc,ca->", [arrays[0], (5, 4), (4, 6)], "f8", semiring="max_plus", memory_limit=4,
        constants=[0],
    )  # fmt: skip
    x, y, z = arrays
    expected = (x[:, :, None] + y[None] + z.T[:, None]).max()
    np.testing.assert_allclose(artifact.sum_slices(arrays[1:]), expected)
    np.testing.assert_allclose(artifact(*arrays[1:])[0], expected)


def test_sums_of_slices_are_pairwise() -> None:
    """One after the other, 2**12 sums of 0.1 in float32 are off by far more than 12 ulp."""
    count = 2**12
    x = np.full((count, 2), 0.1, np.float32)
    artifact = smelt.compile_einsum("ab,ab->b", [(count, 2)] * 2, memory_limit=1, engine="numpy")
    artifact = replace(
        artifact, network=replace(artifact.network, slices=Slices(("a",), *slices_along_a()))
    )
    found = artifact.sum_slices([x, np.ones_like(x)])
    exact = count * float(np.float32(0.1))
    assert np.abs(found / exact - 1).max() < 12 * np.finfo(np.float32).eps


def slices_along_a() -> tuple[Any, Any]:
    return parse("b,b->b", [1, 1]), ((0, 1),)


class Stopped(Exception):
    pass


def test_a_run_that_ended_goes_on_from_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "INTERVAL", 0.0)
    artifact, arrays = sliced("c16", engine="numpy")
    whole, state = artifact.sum_slices(arrays), tmp_path / "state.npz"
    started: list[int] = []

    def stop(done: int, of: int) -> None:
        started.append(done)
        if done == 7:
            raise Stopped

    with pytest.raises(Stopped):
        artifact.sum_slices(arrays, checkpoint=state, progress=stop)
    with pytest.raises(UsageError, match="E698"):
        artifact.sum_slices([arrays[0] + 1, *arrays[1:]], checkpoint=state)
    kept = state.read_bytes()
    started.clear()
    found = artifact.sum_slices(arrays, checkpoint=state, progress=lambda d, _: started.append(d))
    assert found.tobytes() == whole.tobytes()
    assert 1 < started[0] <= 8
    assert not state.exists()
    for damaged in (kept[: len(kept) // 2], b""):
        state.write_bytes(damaged)
        with pytest.raises(UsageError, match="E698"):
            artifact.sum_slices(arrays, checkpoint=state)


def test_a_folder_that_is_missing_is_told_before_the_first_slice(tmp_path: Path) -> None:
    artifact, arrays = sliced("f8", engine="numpy")
    with pytest.raises(UsageError, match="E698"):
        artifact.sum_slices(arrays, checkpoint=tmp_path / "none" / "state.npz", progress=None)


def test_a_checkpoint_is_of_one_element_type_and_shape() -> None:
    keys = set()
    for dtype in ("float8_e4m3fn", "float8_e5m2"):
        for shape in ((2, 3, 4), (2, 4, 3)):
            artifact = smelt.compile_einsum("sab->sba", [shape], np.dtype(dtype), memory_limit=12)
            keys.add(checkpoints.key_of(artifact.network, [np.zeros(shape, dtype)]))
    assert len(keys) == 4


@pytest.mark.parametrize("number", [-1, 10**6, "a"])
def test_only_slices_that_exist_run(number: Any) -> None:
    artifact, arrays = sliced(engine="numpy")
    with pytest.raises(UsageError, match="E658"):
        artifact.run_slice(arrays, number)
    with pytest.raises(UsageError, match="E671"):
        artifact.run_slice([arrays[0].astype("f4"), *arrays[1:]], 0)
    with pytest.raises(UsageError, match="E671"):
        artifact.run_slice(arrays[:2], 0)
