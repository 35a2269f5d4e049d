"""The bits of integers of every type, with their extremes and shifts by more than the width."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

TYPES = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
SHIFTS = [lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic]
LOGICAL = [lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor]


def dtype_of(name: str) -> np.dtype:
    return np.dtype(f"{name[0]}{int(name[1:]) // 8}")


def values(name: str) -> np.ndarray:
    """Extremes, powers of two and their neighbours, and random numbers."""
    limits = np.iinfo(dtype_of(name))
    powers = [(1 << k) + d for k in range(limits.bits) for d in (-1, 0, 1)]
    edges = [0, limits.min, limits.min + 1, limits.max, limits.max - 1, *powers]
    signed = [v for v in (*edges, *(-p for p in powers)) if limits.min <= v <= limits.max]
    rng = np.random.default_rng(0)
    random = rng.integers(limits.min, limits.max, 20, dtype_of(name), endpoint=True)
    return np.array([*signed, *random.tolist()], dtype_of(name))


def pairs(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    return [a.ravel() for a in np.meshgrid(x, y)]


@pytest.mark.parametrize("fn", SHIFTS, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("name", TYPES)
def test_shifts_by_any_count(check, fn, name):
    limits = np.iinfo(dtype_of(name))
    width = limits.bits
    counts = {0, 1, width // 2, width - 1, width, width + 1, 33, 65, limits.max, limits.min}
    x, by = pairs(values(name), np.array(sorted(counts), dtype_of(name)))
    spec = f"{name}[{x.size}]"
    check(fn, spec, spec, inputs=[[x, by]], x64=True)


@pytest.mark.parametrize("fn", SHIFTS, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("by", [0, 3, 7, 8, 31, 63, 100])
def test_shifts_by_a_constant(check, fn, name, by):
    x = values(name)
    check(lambda x: fn(x, np.asarray(by, x.dtype)), f"{name}[{x.size}]", inputs=[[x]], x64=True)


def test_a_constant_shift_is_one_node(check):
    model = check(lambda x: x >> np.uint32(9), "u32[B,3]")
    assert [node.op_type for node in model.graph] == ["BitShift"]


@pytest.mark.parametrize("name", TYPES)
def test_logic_on_every_integer(check, name):
    x, y = pairs(values(name)[::3], values(name)[::5])
    spec = f"{name}[{x.size}]"
    check(lambda a, b: [fn(a, b) for fn in LOGICAL], spec, spec, inputs=[[x, y]], x64=True)
    check(lax.bitwise_not, spec, inputs=[[x]], x64=True)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("fn", [lax.clz, lax.population_count], ids=lambda fn: fn.__name__)
def test_counts_of_bits(check, fn, name):
    x = values(name)
    check(fn, f"{name}[{x.size}]", inputs=[[x]], x64=True)


@pytest.mark.parametrize("name", TYPES)
def test_powers_wrap(check, name):
    x = values(name)
    powers = range(6)
    check(
        lambda x: [lax.integer_pow(x, n) for n in powers],
        f"{name}[{x.size}]",
        inputs=[[x]],
        x64=True,
    )


@pytest.mark.parametrize("name", TYPES)
def test_choices(check, name):
    x = values(name)
    spec = f"{name}[{x.size}]"
    check(lambda a, b: jnp.where(a > 5, a, b), spec, spec, inputs=[[x, x[::-1]]], x64=True)


def test_symbolic_sizes_scalars_and_empty(check):
    check(lambda x, by: (x << by, lax.clz(x)), "u32[B,4]", "u32[]")
    check(lambda x: (lax.population_count(x), x >> 3), "i32[]")
    check(lambda x: (lax.population_count(x), x >> 3, lax.clz(x)), "i64[0,2]", x64=True)


@pytest.mark.parametrize("name", ["i8", "u8", "i16", "u16", "i32", "u32"])
def test_upper_half_of_a_product(check, name):
    limits = np.iinfo(f"{name[0]}{int(name[1:]) // 8}")
    values = np.array([limits.min, limits.min + 1, limits.max, limits.max // 3, 0, 1, 7])
    pairs = [a.ravel().astype(limits.dtype) for a in np.meshgrid(values, values)]
    check(lax.mulhi, f"{name}[49]", f"{name}[49]", inputs=[pairs])
