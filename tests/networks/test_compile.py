"""``smelt.compile_einsum``: equations of every kind agree with opt_einsum, on each target."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import opt_einsum
import pytest

import smelt
from smelt.errors import SmeltError, Unsupported, UsageError
from smelt.operators import find
from smelt.targets.base import Plan
from smelt.targets.host import host

EQUATIONS = {
    "ab,bc->ac": [(3, 4), (4, 5)],
    "ii->": [(4, 4)],
    "iij->j": [(3, 3, 5)],
    "a,b,c->abc": [(2,), (3,), (4,)],
    "xab,yab->xy": [(2, 3, 4), (5, 3, 4)],
    "...ij,jk...->ik...": [(1, 5, 2, 3), (3, 4, 6, 1)],
    ",ab->ba": [(), (2, 3)],
    "->": [()],
    "ab,bc,cd,de->ea": [(2, 3), (3, 4), (4, 5), (5, 6)],
    "ab,bc->ca": [(3, 0), (0, 5)],
    "aab,bcc->ac": [(3, 3, 1), (7, 2, 2)],
    "ωα,αψ->ωψ": [(3, 4), (4, 5)],
    "bxa,byc,bac->bxy": [(2, 3, 4), (2, 5, 6), (2, 4, 6)],
    "axb,bxc,cxa->x": [(3, 4, 3)] * 3,
}


def operands(shapes: list[tuple[int, ...]], dtype: type = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_agrees_with_opt_einsum(equation: str) -> None:
    arrays = operands(EQUATIONS[equation])
    (found,) = smelt.compile_einsum(equation, EQUATIONS[equation])(*arrays)
    expected = np.asarray(opt_einsum.contract(equation, *arrays))
    assert (found.shape, found.dtype) == (expected.shape, np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "target", [{"target": "host", "engine": "native"}, {"target": "c"}, {"target": "onnx"}]
)
@pytest.mark.parametrize(
    "equation",
    [
        "axb,bxc,cxa->x",
        *(pytest.param(e, marks=pytest.mark.slow) for e in EQUATIONS if e != "axb,bxc,cxa->x"),
    ],
)  # fmt: skip
def test_other_targets(equation: str, target: dict[str, str]) -> None:
    arrays = operands(EQUATIONS[equation])
    (found,) = smelt.compile_einsum(equation, EQUATIONS[equation], **target)(*arrays)
    expected = np.asarray(opt_einsum.contract(equation, *arrays))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def random_network(count: int, dims: int) -> tuple[str, list[tuple[int, ...]]]:
    """A ring of operands with chords, and more labels than letters."""
    rng = np.random.default_rng(count)
    terms: list[list[str]] = [[] for _ in range(count)]
    for index in range(count):
        terms[index].append(opt_einsum.get_symbol(index))
        terms[(index + 1) % count].append(opt_einsum.get_symbol(index))
    for index in range(count, count + dims):
        for place in rng.choice(count, 2, replace=False):
            terms[place].append(opt_einsum.get_symbol(index))
    return ",".join(map("".join, terms)) + "->", [(2,) * len(term) for term in terms]


def test_einsums_that_a_target_lowers_go_through_no_passes() -> None:
    artifact = smelt.compile_einsum("ab,bc->ac", [(3, 4), (4, 5)])
    assert artifact.report["passes"] == []
    assert [node.op_type for node in artifact.model.graph] == ["Einsum"]


def test_a_target_that_does_not_lower_it_gets_its_body() -> None:
    def schedule(plan: Plan) -> None:
        if any(node.domain for node in plan.model.graph):
            raise Unsupported("E201", "no operators beyond ONNX")
        host.schedule(plan)

    own = replace(host, computes=lambda model, node: not node.domain, schedule=schedule)
    artifact = smelt.compile_einsum("ab,bc,cd->ad", [(3, 4), (4, 5), (5, 2)], target=own)
    arrays = operands([(3, 4), (4, 5), (5, 2)])
    np.testing.assert_allclose(artifact(*arrays)[0], arrays[0] @ arrays[1] @ arrays[2], rtol=1e-5)
    assert all(not node.domain for node in artifact.model.graph)


def test_many_operands_and_more_labels_than_letters() -> None:
    equation, shapes = random_network(60, 12)
    arrays = operands(shapes, np.float64)
    (found,) = smelt.compile_einsum(equation, shapes, np.float64)(*arrays)
    expected = opt_einsum.contract(equation, *arrays, backend="numpy")
    np.testing.assert_allclose(found, expected, rtol=1e-9)


COMPLEX = {
    **{equation: EQUATIONS[equation] for equation in EQUATIONS if equation != "->"},
    "ab,ba->ab": [(3, 4), (4, 3)],
    "abc->cb": [(3, 4, 2)],
    "a->a": [(3,)],
}


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("equation", COMPLEX)
def test_complex_numbers(equation: str, dtype: type) -> None:
    complex_network(equation, dtype, "numpy")


@pytest.mark.parametrize(
    "equation", ["aab,bcc->ac", *(pytest.param(e, marks=pytest.mark.slow) for e in COMPLEX)]
)
def test_complex_numbers_compiled(equation: str) -> None:
    complex_network(equation, np.complex64, "native")


def complex_network(equation: str, dtype: type, engine: str) -> None:
    shapes = COMPLEX[equation]
    arrays = [x + 1j * x[::-1] ** 2 if x.ndim else x * 1j for x in operands(shapes, dtype)]
    arrays = [array.astype(dtype) for array in arrays]
    (found,) = smelt.compile_einsum(equation, shapes, dtype, engine=engine)(*arrays)
    expected = np.asarray(opt_einsum.contract(equation, *arrays))
    assert (found.shape, found.dtype) == (expected.shape, dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_arrays_that_are_not_contiguous() -> None:
    x, y = operands([(4, 3), (8, 10)])
    (found,) = smelt.compile_einsum("ab,bc->ac", [(3, 4), (4, 5)])(x.T, y[::2, ::-2])
    np.testing.assert_allclose(found, x.T @ y[::2, ::-2], rtol=1e-5)


@pytest.mark.parametrize("shapes", [((0, 3), (3,)), ((2, 0), (0,)), ((0, 0), (0,))])
def test_half_floats_of_size_0(shapes: tuple[tuple[int, ...], ...]) -> None:
    arrays = [np.ones(shape, np.float16) for shape in shapes]
    (got,) = smelt.compile_einsum("ab,b->a", shapes, "float16")(*arrays)
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, np.zeros(shapes[0][:1]))


@pytest.mark.parametrize("options", [{"engine": "numpy"}, {"engine": "native"}], ids=str)
def test_diagonals_of_symbolic_sizes(options: dict[str, str]) -> None:
    contract = smelt.compile_einsum("nnb,nb->b", [("N", "N", 2), ("N", 2)], **options)
    for n in (3, 1, 0):
        x, y = operands([(n, n, 2), (n, 2)])
        np.testing.assert_allclose(contract(x, y)[0], np.einsum("nnb,nb->b", x, y), rtol=1e-5)


def test_symbolic_sizes() -> None:
    artifact = smelt.compile_einsum("nab,nbc->nac", [("N", 2, "K"), ("N", "K", 3)])
    for count in (0, 1, 5):
        x, y = operands([(count, 2, 4), (count, 4, 3)])
        np.testing.assert_allclose(artifact(x, y)[0], x @ y, rtol=1e-5)


SEMIRINGS = (
    "max_plus",
    "min_plus",
    "max_times",
    "max_min",
    "min_max",
    "log_sum_exp",
    "or_and",
    "Min,Mul,inf,1",
)
SHAPES = {
    "ab,bc->ac": [(7, 5), (5, 33)],
    "bxk,bky->byx": [(2, 3, 4), (2, 4, 5)],
    "ab,bc,cd->ad": [(7, 5), (5, 3), (3, 4)],
    "iij,jk->ik": [(4, 4, 5), (5, 40)],
    "a,b->ba": [(3,), (4,)],
    "ab,bc->ac ": [(2, 0), (0, 3)],
    "ab->a": [(3, 0)],
}


def over(semiring: str, equation: str, engine: str) -> None:
    shapes, dtype = SHAPES[equation], np.bool_ if semiring == "or_and" else np.float32
    arrays = [
        np.abs(each) > 0.9 if dtype is np.bool_ else np.abs(each) for each in operands(shapes)
    ]
    if dtype is np.float32:
        for array in arrays:
            array[..., -1:] = np.inf if semiring.startswith("min") else 0
    artifact = smelt.compile_einsum(equation, shapes, dtype, semiring=semiring, engine=engine)
    operator = find("smelt", "Einsum")
    assert operator is not None
    attributes = {"equation": equation, "semiring": semiring, "path": (), "pairs": 0}
    for special in (None, np.nan, -np.inf):
        if special is not None and arrays[0].size and dtype is np.float32:
            arrays[0].flat[0] = special
        with np.errstate(invalid="ignore"):
            (expected,) = operator.reference(arrays, attributes)
        (found,) = artifact(*arrays)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("equation", SHAPES)
@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_semirings(semiring: str, equation: str) -> None:
    over(semiring, equation, "numpy")


@pytest.mark.parametrize(
    ("semiring", "equation"),
    [
        *(("max_plus", "ab,bc->ac"), ("or_and", "ab,bc->ac"), ("log_sum_exp", "ab,bc->ac")),
        *(pytest.param(s, e, marks=pytest.mark.slow) for s in SEMIRINGS for e in SHAPES),
    ],
)
def test_semirings_compiled(semiring: str, equation: str) -> None:
    """NaN in an operand, and an infinity of either sign, give what NumPy gives."""
    over(semiring, equation, "native")


def test_truths_in_onnx() -> None:
    x, y = (each > 0.5 for each in operands([(7, 5), (5, 6)]))
    options = {"semiring": "or_and", "target": "onnx"}
    artifact = smelt.compile_einsum("ab,bc->ac", [(7, 5), (5, 6)], np.bool_, **options)
    np.testing.assert_array_equal(artifact(x, y)[0], x @ y)


@pytest.mark.parametrize("target", ["c", "onnx"])
def test_semirings_on_other_targets(target: str) -> None:
    x, y = operands([(7, 5), (5, 33)])
    artifact = smelt.compile_einsum(
        "ab,bc->ac", [(7, 5), (5, 33)], semiring="max_plus", target=target
    )
    np.testing.assert_allclose(artifact(x, y)[0], (x[:, :, None] + y).max(1), rtol=1e-6)


@pytest.mark.parametrize("semiring", ["max_times", "min_plus", "Min,Max,9,-9"])
@pytest.mark.parametrize("options", [{"engine": "numpy"}, {"engine": "native"}, {"target": "ort"}])
def test_a_sum_over_an_open_size_of_0_is_the_zero(semiring: str, options: dict[str, str]) -> None:
    total = smelt.compile_einsum("ab->b", [("N", 3)], semiring=semiring, **options)
    zero = {"max_times": 0, "min_plus": math.inf}.get(semiring, 9)
    assert total(np.ones((0, 3), np.float32))[0].tolist() == [zero] * 3
    assert total(np.full((2, 3), 2, np.float32))[0].tolist() == [2] * 3


@pytest.mark.parametrize(
    ("semiring", "dtype", "zero"),
    [("sum_product", np.float32, 0), ("min_plus", np.int64, 2**63 - 1)],
)
def test_nothing_is_zero_whatever_it_is_multiplied_by(
    semiring: str, dtype: type, zero: int
) -> None:
    contract = smelt.compile_einsum("aa,bc->b", [(0, 0), (2, 3)], dtype, semiring=semiring)
    other = np.full((2, 3), np.inf if dtype is np.float32 else -3, dtype)
    assert contract(np.zeros((0, 0), dtype), other)[0].tolist() == [zero] * 2


def test_a_semiring_of_ones_own_pickles() -> None:
    own = smelt.Semiring(plus="Max", times="Mul", zero=0, one=1)
    assert pickle.loads(pickle.dumps(own)) == own
    (found,) = smelt.compile_einsum("ab->", [(0, 2)], semiring=own)(np.zeros((0, 2), np.float32))
    assert found == 0


REFUSED = {
    "equation": (("ij,jk->iz", [(2, 3), (3, 4)]), {}, "E655"),
    "ranks": (("ab,bc->ac", [(2, 3), (3,)]), {}, "E655"),
    "sizes": (("ab,bc->ac", [(2, 3), (4, 5)]), {}, "E656"),
    "no shape": (("ab->a", [2]), {}, "E656"),
    "a size that is no number": (("ab->a", [(2.5, 3)]), {}, "E656"),
    "no type": (("ab->a", [(2, 3)], "floaty"), {}, "E656"),
    "no equation": ((3, [(2, 3)]), {}, "E655"),
    "no path": (("ab,bc->ac", [(2, 2)] * 2), {"optimize": ["ab"]}, "E658"),
    "no path found": (("ab,bc,cd->ad", [(2, 2)] * 3), {"optimize": lambda *_: None}, "E658"),
    "a type of no model": (("ab->a", [(2, 3)], "V4"), {}, "E656"),
    "a text for a shape": (("ab->a", ["NM"]), {}, "E656"),
    "negative": (("ab->a", [(2, -3)]), {}, "E656"),
    "booleans": (("ab->a", [(2, 3)], np.bool_), {}, "E656"),
    "complex maximum": (("ab->a", [(2, 3)], np.complex64), {"semiring": "max_plus"}, "E656"),
    "texts": (("ab->a", [(2, 3)], "U5"), {}, "E656"),
    "ranks of NumPy": (("...->...", [(1,) * 65]), {}, "E656"),
    "a zero of no byte": (("ab->a", [(2, 3)], "uint8"), {"semiring": "Max,Min,-9,9"}, "E656"),
    "a zero of no integer": (("ab->a", [(2, 3)], "int8"), {"semiring": "Max,Min,-0.5,9"}, "E656"),
    "semiring": (("ab->a", [(2, 3)]), {"semiring": "plus"}, "E657"),
    "path": (("ab,bc,cd->ad", [(2, 2)] * 3), {"optimize": [(0, 3), (0, 1)]}, "E658"),
}


@pytest.mark.parametrize(("given", "options", "code"), REFUSED.values(), ids=REFUSED)
def test_invalid_networks_are_refused(given: tuple, options: dict[str, object], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        smelt.compile_einsum(*given, **options)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "wrong", [(np.zeros((2, 3)), np.zeros((3, 2))), (np.zeros((2, 3), np.float32),)]
)
def test_wrong_arrays_are_refused(wrong: tuple[np.ndarray, ...]) -> None:
    with pytest.raises(SmeltError) as caught:
        smelt.compile_einsum("ab,bc->ac", [(2, 3), (3, 2)])(*wrong)
    assert caught.value.code in ("E670", "E671")


def test_as_many_dims_as_numpy_has() -> None:
    shape = (2,) + (1,) * 63
    (found,) = smelt.compile_einsum("...->...", [shape])(np.ones(shape, np.float32))
    assert found.shape == shape
    assert math.isclose(found.sum(), 2)
