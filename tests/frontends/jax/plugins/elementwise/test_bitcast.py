"""Floats read as their bits, at every exponent and at the edges between them."""

from __future__ import annotations

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from smelt.errors import Unsupported
from smelt.frontends.jax import trace
from smelt.operators import attach_functions
from smelt.runtime.onnxruntime import OnnxRuntime

FLOATS = {
    "f16": (np.float16, np.uint16, 10),
    "bf16": (ml_dtypes.bfloat16, np.uint16, 7),
    "f32": (np.float32, np.uint32, 23),
    "f64": (np.float64, np.uint64, 52),
}


def values(name: str) -> np.ndarray:
    """Every exponent with both signs and small, middle, large and random significands; one NaN."""
    dtype, unsigned, mantissa = FLOATS[name]
    top = (1 << mantissa) - 1
    rng = np.random.default_rng(0)
    tails = {0, 1, top // 2, top // 2 + 1, top - 1, top, *rng.integers(0, top, 6).tolist()}
    heads = range(1 << (np.iinfo(unsigned).bits - mantissa))
    bits = np.array([h << mantissa | t for h in heads for t in sorted(tails)], unsigned)
    with np.errstate(invalid="ignore"):
        number = ~np.isnan(bits.view(dtype).astype(np.float64))
    return np.append(bits[number].view(dtype), np.array([np.nan], dtype))


def bits_of(x):
    """Return the bits of ``x`` with one pattern for all NaN, so that -0 and bfloat16 can be compared."""
    bits = lax.bitcast_convert_type(x, np.dtype(f"u{x.dtype.itemsize}"))
    return jnp.where(jnp.isnan(x.astype(x.dtype if x.dtype == "f8" else "f4")), 0, bits)


def checked(check, fn, name, *arrays, **options):
    """Assert that model and JAX agree, with inputs and results as bits."""
    dtype, unsigned, _ = FLOATS[name]

    def of_bits(*bits):
        return bits_of(fn(*(lax.bitcast_convert_type(b, dtype) for b in bits)))

    inputs = [array.view(unsigned) for array in arrays]
    specs = [f"u{8 * a.itemsize}[{a.size}]" for a in inputs]
    check(of_bits, *specs, inputs=[inputs], x64=True, **options)


@pytest.mark.parametrize("name", FLOATS)
def test_bits_there_and_back(check, name):
    checked(check, lambda x: x, name, values(name))


@pytest.mark.parametrize("name", ["f16", "f32", "f64"])
def test_signed_bits(check, name):
    x = values(name)
    whole = np.dtype(f"i{x.itemsize}")
    into = lambda x: lax.bitcast_convert_type(x, whole)  # noqa: E731
    check(into, f"{name}[{x.size}]", inputs=[[x]], x64=True)
    back = lambda x: lax.bitcast_convert_type(x, FLOATS[name][0])  # noqa: E731
    spec = f"i{8 * x.itemsize}[{x.size}]"
    check(back, spec, inputs=[[x.view(whole)]], x64=True, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        *(("f32", "u8"), ("f32", "i16"), ("f64", "f32"), ("i64", "u8"), ("u16", "i8")),
        *(("f64", "u32"), ("f16", "u8")),
    ],
)
def test_parts_of_numbers_there_and_back(check, source, target):
    into, back = jnp.dtype(long(target)), jnp.dtype(long(source))
    bits = np.random.default_rng(0).integers(0, 100, (3, 5 * back.itemsize), np.uint8)
    x = bits.view(back)
    parts = x.itemsize // into.itemsize
    check(lambda x: lax.bitcast_convert_type(x, into), f"{source}[3,5]", inputs=[[x]], x64=True)
    given = bits.view(into).reshape(3, 5, parts)
    spec = f"{target}[3,5,{parts}]"
    check(lambda x: lax.bitcast_convert_type(x, back), spec, inputs=[[given]], x64=True, rtol=0)


def long(name: str) -> str:
    sign, width = name.rstrip("0123456789"), name.lstrip("abfiu")
    return {"f": "float", "bf": "bfloat", "i": "int", "u": "uint"}[sign] + width


def test_symbolic_sizes_scalars_and_empty(check):
    fn = lambda x: lax.bitcast_convert_type(x, jnp.uint32)  # noqa: E731
    for spec in ("f32[B,3]", "f32[]", "f32[0,3]"):
        check(fn, spec)
        check(lambda x: lax.bitcast_convert_type(x, jnp.uint8), spec)
    check(lambda x: lax.bitcast_convert_type(x, jnp.float32), "u16[B,2]")


def toward(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of each value and some values as directions."""
    x = values(name)
    edges = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan], x.dtype)
    return np.repeat(x, edges.size), np.tile(edges, x.size)


@pytest.mark.parametrize("name", FLOATS)
def test_the_next_float(check, name):
    a, b = toward(name)
    size = np.abs(a.astype(np.float64))
    normal = (size == 0) | ~(size < ml_dtypes.finfo(a.dtype).tiny)  # XLA takes others for 0.
    checked(check, lax.nextafter, name, a[normal], b[normal])
    checked(check, lax.nextafter, name, b[normal], a[normal])


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_the_next_subnormal_float(name):
    a, b = toward(name)
    spec = f"{name}[{a.size}]"
    model = trace(lax.nextafter, spec, spec, x64=True)
    attach_functions(model)
    np.testing.assert_array_equal(OnnxRuntime(model)(a, b)[0], np.nextafter(a, b))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    "form", [(5, 10), (8, 7), (8, 23), (11, 52), (4, 3), (5, 2), (8, 3), (2, 1), (1, 4), (3, 30)]
)
def test_reduced_precision(check, name, form):
    checked(check, lambda x: lax.reduce_precision(x, *form), name, values(name))


def test_no_bits_of_the_significand(check):
    x = np.array([1, 1.4, 1.5, 1.6, -3, 0.1, np.inf, -np.inf, 7e4, np.nan], np.float32)
    by_default = {"xla_cpu_use_fusion_emitters": True}  # Other loops leave no NaN either.

    def reduced(x):
        return lax.reduce_precision(x, 5, 0)

    checked(check, reduced, "f32", x, compiled=True, compiler_options=by_default)


def test_packed_types_have_no_bits_of_their_own():
    with pytest.raises(Unsupported, match="int4"):
        trace(lambda x: lax.bitcast_convert_type(x, jnp.int4), "u8[3]")
