"""Products of complex numbers, stored as pairs, and of their conjugates."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from written import evaluate, ops

from smelt import operators
from smelt.errors import ErrorList, InvalidModel
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.dot_general import OPERATOR
from smelt.program.lower import lower
from smelt.runtime.runner import run

CASES = {
    "vectors": ("i,i->", (3,), (3,), "lhs_contracting=[0], rhs_contracting=[0]"),
    "matrices": ("ik,kj->ij", (2, 3), (3, 4), "lhs_contracting=[1], rhs_contracting=[0]"),
    "both by their rows": ("ki,jk->ij", (3, 2), (4, 3), "lhs_contracting=[0], rhs_contracting=[1]"),
    "a batch": (
        "bik,kbj->bij",
        (5, 1, 2),
        (2, 5, 3),
        "lhs_contracting=[2], rhs_contracting=[0], lhs_batch=[0], rhs_batch=[1]",
    ),
    "nothing summed": ("i,j->ij", (2,), (3,), ""),
    "numbers": (",->", (), (), ""),
    "no elements": ("ik,kj->ij", (2, 0), (0, 3), "lhs_contracting=[1], rhs_contracting=[0]"),
    "in doubles": ("i,i->", (3,), (3,), "lhs_contracting=[0], rhs_contracting=[0], dtype=11"),
}
FLAGS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def model_of(shapes: tuple[tuple[int, ...], ...], attributes: str, flags: tuple[int, int]):
    x, y = (",".join(map(str, (*shape, 2))) for shape in shapes)
    conjugates = f"pairs=1, lhs_conj={flags[0]}, rhs_conj={flags[1]}"
    every = ", ".join(filter(None, (attributes, conjugates)))
    model = text.parse(
        f"g (float[{x}] x, float[{y}] y) => (z) {{ z = smelt.DotGeneral<{every}>(x, y) }}"
    )
    ShapeInference(model).infer_model()
    return model


def numbers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, (*shape, 2)).astype(np.float32)


@pytest.mark.parametrize("flags", FLAGS, ids=lambda flags: "conjugated: {} {}".format(*flags))
@pytest.mark.parametrize("name", CASES)
def test_reference_body_and_program_are_numpys_product(name: str, flags: tuple[int, int]) -> None:
    equation, *shapes, attributes = CASES[name]
    model, pairs = (
        model_of(shapes, attributes, flags),
        [numbers(s, i) for i, s in enumerate(shapes)],
    )
    sides = [array[..., 0] + 1j * array[..., 1] for array in pairs]
    sides = [x.conj() if flag else x for x, flag in zip(sides, flags, strict=True)]
    product = np.einsum(equation, *sides)
    expected = np.stack([product.real, product.imag], -1)
    (node,) = model.graph
    (result,) = OPERATOR.reference(pairs, OPERATOR.attributes_of(node))
    assert tuple(node.outputs[0].shape) == result.shape
    assert node.outputs[0].dtype == ir.DataType.from_numpy(result.dtype)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(evaluate(lower(model), *pairs)[0], expected)
    if 0 not in shapes[0]:  # ONNX Runtime's Einsum divides by sizes
        assert operators.expand(model) == 1
        np.testing.assert_array_equal(run(model, pairs)[0], expected)


def test_conjugates_change_signs_alone() -> None:
    """In the matrices that a product reads anyway."""
    signs = {(0, 0): "++-+", (0, 1): "+-++", (1, 0): "+++-", (1, 1): "+---"}
    for flags, expected in signs.items():
        program = lower(model_of(((3,), (3,)), "", flags))
        assert ops(program) == ["smelt::ComplexMatrices", "DotGeneral"]
        found = program.instructions[0].ints("signs")
        assert "".join("+" if sign > 0 else "-" for sign in found) == expected


REFUSED = {
    "real numbers have no conjugate": ("float[2]", "rhs_conj=1", "only operands with pairs=1"),
    "no pairs": ("float[3]", "pairs=1", "the two parts"),
    "a number": ("float", "pairs=1", "the two parts"),
    "integers": ("int32[2]", "pairs=1", "pairs of float or double"),
    "halves": ("float16[2]", "pairs=1", "pairs of float or double"),
    "a result in integers": ("float[2]", "pairs=1, dtype=6", "pairs of float or double"),
    "complex numbers have no order": ("float[2]", 'pairs=1, semiring="max_plus"', "semiring"),
    "the dim of parts is no other": (
        "float[2]",
        "pairs=1, lhs_contracting=[0], rhs_contracting=[0]",
        "do not fit rank 0",
    ),
}


@pytest.mark.parametrize(("kind", "attributes", "why"), REFUSED.values(), ids=REFUSED)
def test_refuses(kind: str, attributes: str, why: str) -> None:
    source = f"g ({kind} x) => (z) {{ z = smelt.DotGeneral<{attributes}>(x, x) }}"
    with pytest.raises(InvalidModel, match=why) as caught:
        ShapeInference(text.parse(source)).infer_model()
    assert caught.value.code == "E317"
    with pytest.raises(ErrorList, match=why) as refused:
        lower(text.parse(source))
    assert refused.value.errors[0].code == "E201"
