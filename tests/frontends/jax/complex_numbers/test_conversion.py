"""Functions with real inputs and outputs that compute with complex numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from sampling import sampled

from smelt.errors import ErrorList, SmeltError
from smelt.frontends.jax import trace
from smelt.frontends.jax.complex_numbers import without_complex

NEAR = {"rtol": 2e-4, "atol": 2e-5}


def on_complex(fn):
    """Return ``fn`` as a function of real arrays whose last dim holds the two parts."""

    def packed(*arrays):
        results = fn(*(lax.complex(x[..., 0], x[..., 1]) for x in arrays))
        return [
            jnp.stack([leaf.real, leaf.imag], -1) if jnp.iscomplexobj(leaf) else leaf
            for leaf in jax.tree.leaves(results)
        ]

    return packed


UNARY = [
    jnp.negative, jnp.conj, jnp.real, jnp.imag, jnp.abs, jnp.sign, jnp.square, jnp.exp, jnp.exp2,
    jnp.expm1, jnp.log, jnp.log1p, jnp.sqrt, lax.rsqrt, lax.logistic, jnp.sin, jnp.cos, jnp.tan,
    jnp.sinh, jnp.cosh, jnp.tanh, jnp.arcsin, jnp.arccos, jnp.arctan, jnp.arcsinh, jnp.arccosh,
    jnp.arctanh, jnp.angle, jnp.reciprocal, lambda z: z**3, lambda z: z**-2, lambda z: z**0,
]  # fmt: skip


@pytest.mark.parametrize("fn", sampled(UNARY, 2), ids=lambda fn: getattr(fn, "__name__", ""))
def test_one_operand(check, fn):
    check(on_complex(fn), "f32[4,9,2]", **NEAR)


DOUBLE = [jnp.conj, jnp.abs, jnp.sign, jnp.square, jnp.exp, jnp.sqrt, lax.rsqrt, lambda z: z**-2]


@pytest.mark.parametrize("fn", DOUBLE)
def test_doubles(check, fn):
    check(on_complex(fn), "f64[4,9,2]", rtol=1e-11, atol=1e-11, x64=True)


PRECISE = {
    "log near 1": (jnp.log, [[1 + 1e-4, 1e-5], [0, 1], [0.6, 0.81], [-1, 1e-4]]),
    "log1p near 0": (jnp.log1p, [[1e-6, 1e-7], [-1e-5, 1e-5], [3, 4], [0, 1e-3]]),
    "expm1 near 0": (jnp.expm1, [[1e-6, 1e-7], [-1e-5, 1e-5], [1, 2], [0, 1e-3]]),
    "tanh far out": (jnp.tanh, [[20, 1], [-50, 2], [200, 3], [1e-4, 1e-4]]),
    "large": (jnp.abs, [[3e38, 1e38], [-1e30, 1e30], [1e-30, 1e-30], [0, 0]]),
    "large root": (jnp.sqrt, [[3e38, 1e38], [-1e30, 1e30], [1e-30, 1e-30], [0, 0]]),
    "large log": (jnp.log, [[3e38, 1e38], [-1e30, 1e30], [1e-30, 1e-30], [5, 0]]),
    "branch of the root": (jnp.sqrt, [[-4, 0.0], [-4, -0.0], [4, -0.0], [0, -2]]),
    "branch of log": (jnp.log, [[-4, 0.0], [-4, -0.0], [4, -0.0], [0, -2]]),
}


@pytest.mark.parametrize("case", PRECISE.values(), ids=PRECISE.keys())
def test_where_cancellation_and_overflow_threaten(check, case):
    fn, values = case
    check(on_complex(fn), "f32[4,2]", inputs=[[values]], rtol=2e-5, atol=1e-12)


BINARY = {
    "add": jnp.add,
    "subtract": jnp.subtract,
    "multiply": jnp.multiply,
    "divide": jnp.divide,
    "power": jnp.power,
    "equal": lambda a, b: (a == b, a != b, a == a + 0),
    "choose": lambda a, b: jnp.where(a.real > b.imag, a, b),
    "with a real": lambda a, b: (a * 2.5, 1 - a, a / b.real, 3.0 / b),
    "with a constant": lambda a, b: (a * (1 + 2j), (3 - 1j) / b, a + 1j * b),
    "types": lambda a, b: (b.real.astype(jnp.complex64), a.astype(jnp.complex64)),
}


@pytest.mark.parametrize("fn", BINARY.values(), ids=BINARY.keys())
def test_two_operands(check, fn):
    check(on_complex(fn), "f32[B,5,2]", "f32[5,2]", **NEAR)


def test_division_by_large_and_small(check):
    a = np.array([[3e30, 1e30], [1e-30, 1], [2, -3], [0, 0]], np.float32)
    b = np.array([[1e30, -2e30], [1e-20, 1e-21], [3e36, 1e36], [1, 1]], np.float32)
    check(on_complex(jnp.divide), "f32[4,2]", "f32[4,2]", inputs=[[a, b]], rtol=1e-5, atol=0)


def test_powers_of_zero(check):
    zeros, powers = np.zeros((5, 2)), [[0, 0], [2, 0], [1, 1], [-2, 0], [0, 1]]
    check(on_complex(jnp.power), "f32[5,2]", "f32[5,2]", inputs=[[zeros, powers]])


def test_division_by_zero_and_by_infinity(check):
    a = [[1, 1], [0, 0], [-1, 0], [0, 1], [1, 0], [np.inf, 0], [3, 4]]
    b = [[0, 0], [0, 0], [0, 0], [-0.0, 0], [np.inf, 0], [1, 1], [-np.inf, 2]]
    check(on_complex(jnp.divide), "f32[7,2]", "f32[7,2]", inputs=[[a, b]])


MOVED = {
    "reshape": lambda z: z.reshape(-1),
    "transpose": lambda z: z.T,
    "concatenate": lambda z: jnp.concatenate([z, z[:1], 1j * z], 0),
    "broadcast": lambda z: jnp.broadcast_to(z[None], (3, *z.shape)) + jnp.zeros((3, 1, 1)),
    "slice": lambda z: (z[1:, ::2], z[:, -1], z[None, 0]),
    "gather": lambda z: z[jnp.array([0, 2, 1, 0])],
    "pad": lambda z: jnp.pad(z, ((1, 0), (2, 1)), constant_values=1 + 2j),
    "reverse": lambda z: z[::-1],
    "roll and tile": lambda z: jnp.tile(jnp.roll(z, 1, 1), (2, 1)),
    "dynamic slice": lambda z: lax.dynamic_slice(z, (jnp.argmax(z[:, 0].real), 1), (2, 2)),
    "update": lambda z: z.at[0, 1].set(5j).at[1].add(z[0]),
    "split and stack": lambda z: jnp.stack(jnp.split(z, 2, axis=1)),
    "sort": lambda z: jnp.sort(jnp.round(z), axis=1),
    "sums": lambda z: (z.sum(0), z.mean(), jnp.cumsum(z, 1), jnp.prod(z, 1), jnp.cumprod(z, 0)),
    "variance": lambda z: (z.var(0), jnp.linalg.norm(z)),
    "iota": lambda z: z * jnp.arange(4) + jnp.eye(3, 4, dtype=jnp.complex64),
}


@pytest.mark.parametrize("fn", MOVED.values(), ids=MOVED.keys())
def test_structure(check, fn):
    check(on_complex(fn), "f32[3,4,2]", **NEAR)


def test_symbolic_sizes(check):
    for name in ("reshape", "transpose", "sums", "reverse", "concatenate"):
        check(on_complex(MOVED[name]), "f32[B,S,2]", **NEAR)


def test_products(check):
    check(on_complex(lambda a, b: (a @ b, a.conj() @ b)), "f32[B,3,2]", "f32[3,4,2]", **NEAR)
    check(
        on_complex(lambda a, b: jnp.einsum("bij,bjk->bki", a, b)),
        "f32[2,3,4,2]",
        "f32[2,4,5,2]",
        **NEAR,
    )
    check(on_complex(jnp.vdot), "f32[5,2]", "f32[5,2]", **NEAR)
    conv = lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME")  # noqa: E731
    check(on_complex(conv), "f32[2,3,7,2]", "f32[4,3,3,2]", **NEAR)
    check(on_complex(jnp.convolve), "f32[7,2]", "f32[3,2]", **NEAR)


def mandelbrot(c):
    step = lambda z: (z[0] ** 2 + c, z[1] + 1)  # noqa: E731
    go_on = lambda z: (jnp.abs(z[0]).max() < 4) & (z[1] < 9)  # noqa: E731
    return lax.while_loop(go_on, step, (jnp.zeros_like(c), 0))


CONTROL = {
    "jit": jax.jit(lambda z: jax.jit(jnp.exp)(z) * z),
    "while": mandelbrot,
    "fori": lambda z: lax.fori_loop(0, 3, lambda i, s: s * z + i, z),
    "scan": lambda z: lax.scan(lambda s, x: (s * 0.5j + x, (s, x.real)), z[0], z),
    "scan with constants": lambda z: lax.scan(lambda s, x: (s + z[1] * x, s), 1j * z[0], z.real),
    "cond": lambda z: lax.cond(z[0, 0].real > 0, lambda v: v * 1j, lambda v: v.conj(), z),
    "vmap": jax.vmap(lambda row: row / jnp.abs(row).max()),
    "remat": jax.checkpoint(lambda z: jnp.sin(z) * z),
}


@pytest.mark.parametrize("fn", CONTROL.values(), ids=CONTROL.keys())
def test_calls_and_loops(check, fn):
    check(on_complex(fn), "f32[3,4,2]", **NEAR)


def test_constants(check):
    weights = np.array([1 + 2j, -1j, 3], np.complex64)
    check(on_complex(lambda z: (z * weights, jnp.asarray(weights) + z)), "f32[B,3,2]", **NEAR)
    check(lambda x: (x + 2j).imag, "f32[3]")


def test_derivatives(check):
    energy = lambda x: jnp.abs(jnp.exp(1j * x) * (x + 2j) ** 3).sum()  # noqa: E731
    check(jax.grad(energy), "f32[5]", rtol=1e-4, atol=1e-4)


def test_complex_in_a_custom_derivative(check):
    @jax.custom_jvp
    def twice(z):
        return z * (2 + 1j)

    twice.defjvp(lambda primals, tangents: (twice(*primals), twice(*tangents)))
    check(on_complex(twice), "f32[3,2]")


def test_a_function_called_twice_is_converted_once():
    turned = jax.jit(lambda z: z * 1j)
    closed = jax.make_jaxpr(lambda x: turned(turned(lax.complex(x, x))).real)(1.0)
    calls = [e for e in without_complex(closed).jaxpr.eqns if e.primitive.name == "jit"]
    assert len(calls) == 2
    assert calls[0].params["jaxpr"] is calls[1].params["jaxpr"]
    assert [len(calls[0].params[name]) for name in ("donated_invars", "out_layouts")] == [2, 2]


def test_a_reduction_by_a_function_of_complex_numbers_is_refused():
    fn = on_complex(lambda z: lax.reduce(z, np.complex64(1), lambda a, b: a * b + a, (0,)))
    with pytest.raises(ErrorList, match="'reduce'"):
        trace(fn, "f32[3,2]")


def test_nothing_complex_is_left(check):
    model = check(on_complex(lambda z: jnp.exp(z) * z), "f32[3,2]")
    assert all("COMPLEX" not in str(v.dtype) for node in model.graph for v in node.outputs)


def test_primitives_without_rule_are_refused_together():
    fn = on_complex(lambda z: (lax.linalg.hessenberg(z)[0], lax.linalg.tridiagonal(z)[0]))
    with pytest.raises(ErrorList) as caught:
        trace(fn, "f32[3,3,2]")
    assert "hessenberg" in str(caught.value)
    assert "tridiagonal" in str(caught.value)


def test_unused_primitives_are_not_refused(check):
    check(on_complex(lambda z: (lax.linalg.hessenberg(z)[0], z + 1)[1]), "f32[3,3,2]")


@pytest.mark.parametrize("wide", [False, True])
def test_scatter_mul_of_complex_numbers(check, wide):
    def scaled(z):
        return z.at[1:, ::2].multiply(2 - 1j), z.at[:, 0].multiply(z[:, 1]), z.at[7].multiply(3)

    width = 64 if wide else 32
    check(on_complex(scaled), f"f{width}[3,5,2]", x64=wide, **NEAR)


def test_scatter_mul_keeps_other_elements(check):
    """An element without a factor stays infinite."""
    z = np.array([[1, 2], [np.inf, 3], [np.nan, np.inf]], np.float32)
    check(on_complex(lambda z: z.at[0].multiply(2j)), "f32[3,2]", inputs=[[z]])


def test_scatter_mul_at_repeated_indices_is_refused():
    def scaled(z):
        return z.at[jnp.array([0, 0])].multiply(2j)

    with pytest.raises(SmeltError, match="E105") as caught:
        trace(on_complex(scaled), "f32[3,2]")
    assert "unique_indices" in str(caught.value)


def test_counting_in_complex_numbers(check):
    def counted(x):
        return (x * lax.iota(jnp.complex64, 4)).imag, lax.iota(jnp.complex64, 4).real

    check(counted, "f32[4]")


GRADIENTS = {
    "of parts of one number": jax.grad(lambda x: _parts_of_a_product(x).sum()),
    "of absolute values": jax.grad(lambda x: jnp.abs(x * (1 + 2j) + x[::-1] * 1j).sum()),
    "through a branch": jax.grad(
        lambda x: lax.cond(x[0, 0] > 0, lambda z: z * z, lambda z: z, x * (1 + 1j)).real.sum()
    ),
}


def _parts_of_a_product(x):
    z = lax.complex(x, x[::-1]) ** 2
    return z.real * z.imag


@pytest.mark.parametrize("name", GRADIENTS)
def test_derivatives_of_parts_are_numbers_that_broadcast(check, name):
    check(GRADIENTS[name], "f32[3,4]", **NEAR)
