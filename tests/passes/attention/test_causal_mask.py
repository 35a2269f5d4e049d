"""Arrays and expressions that are the causal mask, and similar ones that are not."""

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.ir.constants import Constants
from smelt.passes.attention.causal_mask import is_causal, on_diagonal
from smelt.passes.base import PassContext
from smelt.runtime.runner import open_runner

POSITIONS = (
    "s = Shape<start=0, end=1>(x) n = Squeeze(s, zero) c = Range(i, n, j) r = Unsqueeze(c, one)"
)
CONSTANTS = (
    "int64[1] zero = {0}, int64[1] one = {1}, int64[2] lead = {0,1}, int64 i = {0}, int64 j = {1}, "
    "int64 k = {-1}, float no = {0}, float yes = {1}, float low = {-1e31}, bool off = {0}"
)


def mask_of(body: str, shape: str = "S,S") -> tuple[ir.Model, bool | None]:
    """Return a model with one mask ``y`` for the size of ``x``, and what ``is_causal`` says of
    it."""
    graph = f"g (float[S] x) => (float[{shape}] y) <{CONSTANTS}> {{ {POSITIONS} {body} }}"
    model = PassContext.of(text.parse(graph, 23)).model
    (size,) = model.graph.inputs[0].shape or ()
    return model, is_causal(model.graph.outputs[0], size, Constants())


def choose(condition: str) -> str:
    return f"{condition} y = Where(m, no, low)"


CAUSAL = {
    "rows at least columns": choose("m = GreaterOrEqual(r, c)"),
    "columns at most rows": choose("m = LessOrEqual(c, r)"),
    "not columns after": choose("a = Less(r, c) m = Not(a)"),
    "not columns after, from them": choose("a = Greater(c, r) m = Not(a)"),
    "before, or the same": choose("a = Greater(r, c) b = Equal(r, c) m = Or(a, b)"),
    "positions that are cast": choose(
        "d = Cast<to=6>(c) e = Unsqueeze(d, one) m = GreaterOrEqual(e, d)"),
    "positions of two counts": choose("d = Range(i, n, j) m = GreaterOrEqual(r, d)"),
    "a row of columns": choose("d = Unsqueeze(c, zero) m = GreaterOrEqual(r, d)"),
    "positions that are expanded": choose(
        "e = Concat<axis=0>(s, s) d = Expand(r, e) m = GreaterOrEqual(d, c)"),
    "a number compared": choose(
        "a = GreaterOrEqual(r, c) f = Where(a, yes, no) m = Equal(f, yes)"),
    "a number cast": choose("a = GreaterOrEqual(r, c) f = Cast<to=1>(a) m = Cast<to=9>(f)"),
    "or nothing": choose(
        "a = GreaterOrEqual(r, c) b = Not(a) d = And(b, off) m = Or(a, d)"),
    "a product": "a = Less(r, c) f = Cast<to=1>(a) y = Mul(f, low)",
    "the lower triangle of ones": choose(
        "e = Concat<axis=0>(s, s) a = Expand(yes, e) b = Trilu<upper=0>(a) m = Cast<to=9>(b)"),
    "the upper triangle of lows": (
        "e = Concat<axis=0>(s, s) a = Expand(low, e) y = Trilu<upper=1>(a, j)"),
    "and what is made": choose(
        "e = Concat<axis=0>(s, s) f = ConstantOfShape<value = float[1] {1}>(e) b = Cast<to=9>(f) "
        "a = GreaterOrEqual(r, c) m = And(a, b)"),
}  # fmt: skip


@pytest.mark.parametrize("body", CAUSAL.values(), ids=CAUSAL.keys())
def test_the_mask_is_told_by_what_it_holds(body: str) -> None:
    model, causal = mask_of(body)
    assert causal is True
    for size in (1, 2, 5):
        (bias,) = open_runner(model)(np.zeros(size, np.float32))
        np.testing.assert_array_equal(bias == 0, np.tri(size, dtype=bool))


def test_dims_of_1_may_lead() -> None:
    moved = "a = GreaterOrEqual(r, c) m = Unsqueeze(a, lead)"
    assert mask_of(choose(moved), "1,1,S,S")[1] is True
    late = "m = GreaterOrEqual(r, c) b = Where(m, no, low) y = Unsqueeze(b, lead)"
    assert mask_of(late, "1,1,S,S")[1] is True


OTHER = {
    "without the own position": choose("m = Greater(r, c)"),
    "the keys after": choose("m = LessOrEqual(r, c)"),
    "the own position alone": choose("m = Equal(r, c)"),
    "every key": choose("a = GreaterOrEqual(r, c) b = Not(a) m = Or(a, b)"),
    "zeros hidden": "m = GreaterOrEqual(r, c) y = Where(m, low, no)",
    "not low enough": "m = GreaterOrEqual(r, c) y = Where(m, no, yes)",
    "something seen": "m = GreaterOrEqual(r, c) y = Where(m, yes, low)",
    "infinite": "a = Less(r, c) f = Cast<to=1>(a) g = Mul(f, low) h = Mul(low, low) "
        "e = Sub(no, h) y = Where(a, e, no)",
    "an offset": choose("d = Add(r, j) m = GreaterOrEqual(d, c)"),
    "a window": choose(
        "a = GreaterOrEqual(r, c) d = Sub(r, j) b = GreaterOrEqual(c, d) m = And(a, b)"),
    "padding": choose("a = GreaterOrEqual(r, c) p = Greater(x, no) m = And(a, p)"),
    "a count from another start": choose("d = Range(j, n, j) m = GreaterOrEqual(r, d)"),
    "a count down": choose("d = Range(n, i, k) m = GreaterOrEqual(r, d)"),
    "positions as numbers": choose("f = Cast<to=10>(c) g = Unsqueeze(f, one) "
        "m = GreaterOrEqual(g, f)"),
    "another triangle": "e = Concat<axis=0>(s, s) a = Expand(low, e) y = Trilu<upper=1>(a)",
    "a triangle that begins late": (
        "e = Concat<axis=0>(s, s) a = Expand(low, e) y = Trilu<upper=1>(a, k)"),
}  # fmt: skip


@pytest.mark.parametrize("body", OTHER.values(), ids=OTHER.keys())
def test_other_masks_are_no_causal_mask(body: str) -> None:
    assert not mask_of(body)[1]


@pytest.mark.parametrize("shape", ["2,4,1", "2,1,4"])
def test_a_constant_that_differs_by_batch_makes_no_triangle(shape: str) -> None:
    rows = ",".join(str(k % 4) for k in range(8))
    graph = (
        f"g (float[4] x) => (float[2,4,4] y) <float[{shape}] b = {{{rows}}}, {CONSTANTS}> "
        f"{{ {POSITIONS} m = GreaterOrEqual(r, c) t = Where(m, no, low) y = Add(b, t) }}"
    )
    model = PassContext.of(text.parse(graph, 23)).model
    assert is_causal(model.graph.outputs[0], 4, Constants()) is None


def test_an_empty_constant_is_no_triangle() -> None:
    value = ir.Value(name="m", shape=ir.Shape([0, 0]), const_value=ir.Tensor(np.zeros((0, 0))))
    assert ir.Graph([], [], nodes=[], initializers=[value]).initializers
    assert on_diagonal(value, 0, Constants()) is None


def array(size: int, *, k: int = 0, low: float = -3e38, lead: tuple[int, ...] = ()) -> np.ndarray:
    square = np.where(np.tri(size, k=k, dtype=bool), np.float32(0), np.float32(low))
    return np.broadcast_to(square, (*lead, size, size)).copy()


def taken(bias: np.ndarray, size: int) -> bool | None:
    value = ir.Value(name="bias", shape=ir.Shape(bias.shape), const_value=ir.Tensor(bias))
    graph = ir.Graph([], [], nodes=[], initializers=[value])
    assert graph.initializers
    return is_causal(value, size, Constants())


@pytest.mark.parametrize("size", [1, 2, 3, 200])
def test_arrays(size: int) -> None:
    assert taken(array(size), size)
    assert taken(array(size, lead=(1, 1)), size)
    assert not taken(array(size, k=-1), size)
    assert size == 1 or not taken(array(size, k=1), size)
    assert size == 1 or not taken(array(size).T.copy(), size)
    assert size == 1 or not taken(array(size, low=-1e9), size)
    assert size == 1 or not taken(array(size, low=-np.inf), size)
    assert not taken(array(size), size + 1)


@pytest.mark.parametrize("at", [(0, 0), (4, 0), (2, 1), (0, 4), (3, 4)])
def test_one_other_element_makes_another_mask(at: tuple[int, int]) -> None:
    bias = array(5, lead=(1, 1))
    bias[0, 0][at] = -5.0
    assert not taken(bias, 5)


def test_masked_entries_may_hold_different_numbers() -> None:
    bias = array(4)
    bias[0, 1:] = -1e31
    assert taken(bias, 4)


def test_squares_inside_an_expression_may_be_arrays() -> None:
    flags = ",".join("1" if row >= column else "0" for row in range(4) for column in range(4))
    for given, expected in ((flags, True), (flags[::-1], False), ("0," + flags[2:], None)):
        graph = (
            f"g (float[4] x) => (float[4,4] y) <bool[4,4] a = {{{given}}}, float no = {{0}}, "
            "float low = {-1e31}, bool f = {0}> { m = Or(a, f) y = Where(m, no, low) }"
        )
        model = PassContext.of(text.parse(graph, 23)).model
        assert is_causal(model.graph.outputs[0], 4, Constants()) is expected


def test_positions_may_be_arrays() -> None:
    for columns, expected in (("0,1,2", True), ("1,2,3", None)):
        graph = (
            f"g (float[3] x) => (float[3,3] y) <int64[3,1] r = {{0,1,2}}, int64[3] c = {{{columns}}}, "
            "float no = {0}, float low = {-1e31}> { m = GreaterOrEqual(r, c) y = Where(m, no, low) }"
        )
        model = PassContext.of(text.parse(graph, 23)).model
        assert is_causal(model.graph.outputs[0], 3, Constants()) is expected


def test_long_chains_are_given_up() -> None:
    steps = " ".join(f"m{i + 1} = Not(m{i})" for i in range(200))
    assert mask_of(f"m0 = GreaterOrEqual(r, c) {steps} y = Where(m200, no, low)")[1] is None
