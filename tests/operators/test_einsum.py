"""``smelt.Einsum``, which files hold: what its shape rule and its lowering refuse."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.errors import ErrorList, InvalidModel
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.einsum import OPERATOR
from smelt.program.lower import lower

WRONG = {
    "repeated label": 'equation="ab,bc->aa"',
    "sizes": 'equation="ab,cb->ac"',
    "no semiring": 'equation="ab,bc->ac", semiring="max_over"',
    "numbers are no truths": 'equation="ab,bc->ac", semiring="or_and"',
    "no such operand": 'equation="ab,bc->ac", path=[0, 5]',
    "half a pair": 'equation="ab,bc->ac", path=[0, 1, 0]',
    "path ends early": 'equation="ab,bc->ac", path=[1, 1]',
    "no pairs": 'equation="a,b->a", pairs=1',
}


@pytest.mark.parametrize("attributes", WRONG.values(), ids=WRONG.keys())
def test_refuses_what_cannot_be(attributes: str) -> None:
    node = f"smelt.Einsum<{attributes}>(x, y)"
    model = text.parse(f"g (float[2,3] x, float[3,4] y) => (float[2,4] z) {{ z = {node} }}")
    with pytest.raises(InvalidModel) as caught:
        ShapeInference(model).infer_model()
    assert caught.value.code == "E317"
    assert caught.value.why
    with pytest.raises(ErrorList, match="E201"):
        lower(model)


def test_refuses_operands_of_two_types() -> None:
    node = 'smelt.Einsum<equation="ab,bc->ac">(x, y)'
    model = text.parse(f"g (float[2,3] x, double[3,4] y) => (z) {{ z = {node} }}")
    with pytest.raises(InvalidModel, match="element types DOUBLE and FLOAT of operands differ"):
        ShapeInference(model).infer_model()


def test_complex_numbers_have_no_maximum() -> None:
    node = 'smelt.Einsum<equation="a,a->a", pairs=1, semiring="max_plus">(x, x)'
    model = text.parse(f"g (float[3,2] x) => (z) {{ z = {node} }}")
    with pytest.raises(InvalidModel, match="max_plus is not defined on complex64"):
        ShapeInference(model).infer_model()


EQUATIONS = ("ab,bc->ac", "abc,abd->bcd", "a,b->ab", "aab->ba", "abc->b", "ab,ab,cb->a", "ab,c->c")


@pytest.mark.parametrize("equation", EQUATIONS)
@pytest.mark.parametrize("pairs", [0, 1])
def test_the_reference_computes_what_numpy_does(equation: str, pairs: int) -> None:
    rng, sizes = np.random.default_rng(0), {"a": 2, "b": 3, "c": 4, "d": 5}
    shapes = [
        [sizes[label] for label in term] for term in equation.split("->", maxsplit=1)[0].split(",")
    ]
    arrays = [rng.normal(size=(*shape, *[2] * pairs)) for shape in shapes]
    given = {each.name: each.default for each in OPERATOR.attributes}
    (found,) = OPERATOR.reference(arrays, {**given, "equation": equation, "pairs": pairs})
    numbers = [array.view(np.complex128)[..., 0] if pairs else array for array in arrays]
    expected = np.einsum(equation, *numbers)
    if pairs:
        expected = np.stack([expected.real, expected.imag], axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
