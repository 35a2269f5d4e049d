"""Symbolic dims in the interface, in shapes and as numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from smelt.errors import SmeltError
from smelt.frontends.jax import trace

SHAPES = {
    "a product": (lambda x: x.reshape(x.shape[0] * x.shape[1], -1), "f32[B,S,3]"),
    "what is left": (lambda x: x.reshape(-1), "f32[B,S,4]"),
    "a part of a dim": (lambda x: x.reshape(2, -1, 3), "f32[2*B,3]"),
    "heads": (lambda x: x.reshape(*x.shape[:2], 2, 4).swapaxes(1, 2), "f32[B,S,8]"),
    "dims that change places": (lambda x: x.swapaxes(0, 1).reshape(x.shape[1], -1), "f32[B,S,4]"),
    "a sum": (lambda x: jnp.concatenate([x, x[:1]]), "f32[S,2]"),
    "a difference": (lambda x: x[1:] * x[:-1], "f32[S]"),
    "half, rounded down": (lambda x: x[: x.shape[0] // 2], "f32[S]"),
    "every third": (lambda x: x[1::3], "f32[S]"),
    "the next multiple": (lambda x: jnp.pad(x, (0, -x.shape[0] % 4)), "f32[S]"),
    "a maximum": (lambda x: jnp.pad(x, (0, jax.core.max_dim(6 - x.shape[0], 0))), "f32[S]"),
    "a minimum": (lambda x: x[: jax.core.min_dim(x.shape[0], 4)], "f32[S]"),
    "the diagonal": (jnp.diagonal, "f32[S,S]"),
    "two triangles": (lambda x: (jnp.tril(x), jnp.triu(x, 1)), "f32[S,S]"),
}

NUMBERS = {
    "arange": (lambda x: x + jnp.arange(x.shape[0]), "i32[S]"),
    "arange by steps": (lambda x: jnp.arange(1, 2 * x.shape[0], 2) - x, "i32[S]"),
    "arange of floats": (lambda x: x + jnp.arange(x.shape[0], dtype=jnp.float32), "f32[S]"),
    "linspace": (lambda x: x * jnp.linspace(0, 1, x.shape[0]), "f32[S]"),
    "positions": (lambda x: jax.lax.broadcasted_iota(jnp.int32, x.shape, 1) * x, "i32[B,S]"),
    "one hot": (lambda i: jax.nn.one_hot(i, i.shape[0]), "i32[S]"),
    "identity": (lambda x: x @ jnp.eye(x.shape[0]), "f32[S,S]"),
    "size": (lambda x: x.size * x.sum() / jnp.sqrt(x.shape[-1]), "f32[B,S]"),
    "clamp": (lambda x: jnp.clip(x, 0, x.shape[0]), "f32[S]"),
    "remainder": (lambda x: x * (x.shape[0] % 3) + x.shape[0] // 3, "f32[S]"),
    "negative remainder": (lambda x: x * (-x.shape[0] % 3) + (-x.shape[0]) // 3, "f32[S]"),
    "a loop": (
        lambda x: jax.lax.fori_loop(0, x.shape[0], lambda i, c: c - x[i] * i, 0.0),
        "f32[S]",
    ),
}

AT_LEAST_2 = {"constraints": ("S >= 2",), "sizes": ({"B": 1, "S": 2}, {"B": 3, "S": 7})}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(check, name):
    fn, spec = SHAPES[name]
    check(fn, spec, **AT_LEAST_2 if "S" in spec else {})


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(check, name):
    fn, spec = NUMBERS[name]
    check(fn, spec, **AT_LEAST_2)


def test_equations_between_symbols(check):
    sizes = ({"S": 4, "T": 2}, {"S": 6, "T": 3})
    check(
        lambda x, y: x.reshape(-1, 2) * y[:, None],
        *("f32[S]", "f32[T]"),
        constraints=("S == 2*T",),
        sizes=sizes,
    )


PATCHES = jnp.arange(96, dtype=jnp.float32).reshape(4, 4, 3, 2) / 96


def unshuffled(x):
    b, h, w, c = x.shape
    parts = x.reshape(b, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 2, 4, 5)
    return parts.reshape(b, h // 2, w // 2, 4 * c)


def shuffled_back(x):
    b, h, w, c = unshuffled(x).shape
    parts = unshuffled(x).reshape(b, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5)
    return parts.reshape(b, 2 * h, 2 * w, c // 4) + x


def patches(x):
    rows = jax.lax.conv_general_dilated(
        x, PATCHES, (4, 4), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    ).reshape(x.shape[0], -1, 2)
    return jnp.einsum("bnd,bmd->bnm", rows, rows)


MULTIPLES = {
    "parts of 8": (
        *(lambda x: x.reshape(x.shape[0] // 8, 8).sum(1), ["f32[S]"], "S % 8 == 0, S >= 8"),
        *({"S": 8}, ["S"], ["floor(S/8)"]),
    ),
    "what is left, by two divisors and a bound": (
        *(lambda x: (x.reshape(-1, 6), x[::3] + x[1::3]), ["f32[S]"]),
        *("S % 6 == 0, S % 4 == 0, S >= 13", {"S": 24}, ["S"]),
        ["2*floor(S/12),6", "4*floor(S/12)"],
    ),
    "strides and back": (
        *(lambda x: jnp.repeat(x[::4], 4) * x * (x.shape[0] % 3), ["f32[S]"], "S % 4 == 0"),
        *({"S": 20}, ["S"], ["S"]),
    ),
    "a square": (
        *(lambda x: x.reshape(-1, 9), ["f32[S,S]"], "S % 3 == 0", {"S": 6}, ["S,S"]),
        ["floor(S/3)**2,9"],
    ),
    "sums of it": (
        *(lambda x, y: x.sum() + jnp.arange(y.shape[0]), ["f32[2*S - 1]", "f32[S,T]"]),
        *("S % 4 == 0, S >= T", {"S": 8, "T": 5}, ["2*S - 1", "S,T"], ["S"]),
    ),
    "an equation, which stays": (
        *(lambda x, y: x.reshape(-1, 2) * y[:, None], ["f32[S]", "f32[T]"]),
        *("S == 2*T, S % 2 == 0", {"S": 8, "T": 4}, ["2*T", "T"], ["T,2"]),
    ),
    "pixels": (
        *(shuffled_back, ["f32[B,H,W,3]"], "H % 2 == 0, W % 2 == 0"),
        *({"B": 2, "H": 4, "W": 6}, ["B,H,W,3"], ["B,H,W,3"]),
    ),
    "patches": (
        *(patches, ["f32[B,H,W,3]"], "H % 4 == 0, W % 4 == 0", {"B": 2, "H": 8, "W": 12}),
        *(["B,H,W,3"], ["B,floor(H/4)*floor(W/4),floor(H/4)*floor(W/4)"]),
    ),
}


@pytest.mark.parametrize("name", MULTIPLES)
def test_a_constraint_makes_a_dim_a_product_under_its_own_name(check, name):
    fn, given, constraints, sizes, inputs, outputs = MULTIPLES[name]
    model = check(fn, *given, constraints=constraints.split(", "), sizes=(sizes,))
    assert [str(value.shape)[1:-1] for value in model.graph.inputs] == inputs
    assert [str(value.shape)[1:-1] for value in model.graph.outputs] == outputs


def test_errors_and_warnings_name_the_symbol_of_the_constraint():
    constraints = ["S % 4 == 0"]
    with pytest.raises(SmeltError, match=r"\(S,\), \(2\*\(S//4\),\)"):
        trace(lambda x: x + x[::2], "f32[S]", constraints=constraints)
    with pytest.raises(SmeltError, match=r"multiple, as in 'f32\[8\*S,3\]'"):
        trace(
            lambda x: x if x.shape[0] % 8 == 0 else x[:1],
            "f32[S]",
            constraints=constraints,
            strict=True,
        )
    with pytest.warns(
        UserWarning, match="because the function treats S >= 9 and S <= 8 differently"
    ):
        trace(lambda x: x * 2 if x.shape[0] > 8 else x, "f32[S]", constraints=constraints)
    with pytest.raises(SmeltError, match="__over_ and a number are reserved"):
        trace(jnp.sin, "f32[S__over_4]")


def test_symbols_are_solved_one_after_the_other(check):
    def fn(x, y, z):
        return x * x.shape[0] + jnp.arange(z.shape[0]).sum(), y * y.shape[0], z

    sizes = ({"B": 2, "S": 3, "T": 1}, {"B": 4, "S": 1, "T": 5})
    specs = ("f32[B + T + 2*S]", "f32[B + S]", "f32[B - 1]")
    check(fn, *specs, constraints=("B >= 2",), sizes=sizes)


def test_a_symbol_may_come_from_any_dim_that_has_it(check):
    check(lambda x, y: (x.sum() * x.shape[0], y[: x.shape[0]]), "f32[S//2]", "f32[S]", **AT_LEAST_2)


@pytest.mark.parametrize("specs", [("f32[S+T]",), ("f32[S+T]", "f32[S+2*T]"), ("f32[max(S,T)]",)])
def test_sizes_that_no_dim_determines_are_refused(specs):
    with pytest.raises(SmeltError, match="cannot be computed from the inputs") as caught:
        trace(lambda *xs: jnp.arange(xs[0].shape[0] * 2).sum(), *specs)
    assert caught.value.code == "E103"


def test_the_error_for_an_undecided_comparison_names_line_and_fix(check):
    def fn(x):
        return x[:3] if x.shape[0] > 3 else x

    with pytest.raises(SmeltError, match="'S' > '3' is inconclusive") as caught:
        trace(fn, "f32[S]", strict=True)
    assert caught.value.code == "E112"
    assert "test_symbols.py" in caught.value.at[0]
    assert "in fn" in caught.value.at[0]
    assert "'S >= 4'" in caught.value.fix
    check(fn, "f32[S]", constraints=("S >= 4",), sizes=({"S": 4}, {"S": 9}))
    table = jnp.ones(8)
    with pytest.raises(SmeltError) as caught:
        trace(lambda x: jax.lax.dynamic_slice_in_dim(table, 0, x.shape[0]), "f32[S]", strict=True)
    assert "'S <= 8'" in caught.value.fix


def test_the_error_for_a_possible_remainder_names_line_and_fix():
    with pytest.raises(SmeltError, match="may leave a remainder") as caught:
        trace(lambda x: x.reshape(2, -1), "f32[S]")
    assert caught.value.code == "E112"
    assert "test_symbols.py" in caught.value.at[0]
    assert trace(lambda x: x.reshape(2, -1), "f32[2*S]").graph.outputs[0].shape == [2, "S"]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x * float(x.shape[0]),
        lambda x: sum(x[i] for i in range(x.shape[0])),
        lambda x: jnp.stack(list(x)),
        lambda x: jnp.split(x, x.shape[0]),
        lambda x: x * x.shape[0].bit_length(),
        lambda x: x * int(x.shape[0]),
    ],
)
def test_a_symbolic_size_used_as_a_number_says_so(fn):
    with pytest.raises(SmeltError, match="a symbolic size is used as a number") as caught:
        trace(fn, "f32[S,4]")
    assert caught.value.code == "E112"
    assert "test_symbols.py" in caught.value.at[0]
    assert "give that dim as a number" in caught.value.fix
    assert "constraints" not in caught.value.fix


SCANS = {
    "as long as what is scanned": lambda x: jax.lax.scan(
        lambda c, row: (c + row, c * row), jnp.zeros(4), x, length=x.shape[0]
    ),
    "of nothing but a length": lambda x: jax.lax.scan(
        lambda c, _: (c + 1, c), x.sum(), None, length=x.shape[0]
    ),
    "backward, of several": lambda x: jax.lax.scan(
        lambda c, rows: (c + rows[0] @ rows[1], c),
        0.0,
        (x, x),
        length=len(x.T) * 0 + x.shape[0],
        reverse=True,
    ),
}


@pytest.mark.parametrize("name", SCANS)
def test_scans_of_a_symbolic_length(check, name):
    check(SCANS[name], "f32[S,4]", sizes=({"S": 1}, {"S": 5}))


def test_scans_of_another_length_are_refused_by_jax():
    with pytest.raises(SmeltError, match="used as a number"):
        trace(lambda x: jax.lax.scan(lambda c, r: (c, r), 0.0, x, length=x.shape[0] + 1), "f32[S]")
