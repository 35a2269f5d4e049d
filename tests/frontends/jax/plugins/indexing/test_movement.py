"""Operators that move elements."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

CASES = {
    "reshape": (lambda x: x.reshape(x.shape[0], -1), "f32[B,3,4]"),
    "reshape merges two symbols": (lambda x: x.reshape(-1, 4), "f32[B,S,4]"),
    "reshape splits heads": (lambda x: x.reshape(*x.shape[:2], 2, 2), "f32[B,S,4]"),
    "reshape moves a symbol": (lambda x: x.reshape(2, x.shape[0], 2, x.shape[1]), "f32[B,S,4]"),
    "reshape to a rank 0": (lambda x: x.reshape(()), "f32[1,1]"),
    "reshape of nothing": (lambda x: x.reshape(0, 3), "f32[3,0]"),
    "reshape of nothing, symbolic": (lambda x: x.reshape(x.shape[0], 3, 0), "f32[B,0]"),
    "ravel": (jnp.ravel, "f32[B,S]"),
    "transpose": (lambda x: x.transpose(2, 0, 1), "f32[B,S,4]"),
    "transpose to itself": (lambda x: lax.transpose(x, (0, 1)), "f32[B,4]"),
    "squeeze": (lambda x: x.squeeze((1, 3)), "f32[B,1,4,1]"),
    "expand_dims": (lambda x: jnp.expand_dims(x, (0, 2)), "f32[B,4]"),
    "concatenate": (lambda x: jnp.concatenate([x, x * 2], 1), "f32[B,4]"),
    "concatenate symbols": (lambda x: jnp.concatenate([x, x], 0), "f32[B,4]"),
    "concatenate one": (lambda x: jnp.concatenate([x], 0) + 1, "f32[B,4]"),
    "stack": (lambda x: jnp.stack([x, x], 1), "f32[B,4]"),
    "split": (lambda x: jnp.split(x, [1, 3], axis=1), "f32[B,4]"),
    "split in one": (lambda x: jnp.split(x, 1, axis=1), "f32[B,4]"),
    "rev": (lambda x: lax.rev(x, (0, 2)), "f32[B,3,4]"),
    "slice": (lambda x: x[1:3, ::2], "f32[5,6]"),
    "slice with symbols": (lambda x: x[:, 1 : x.shape[1] - 1], "f32[B,S]"),
    "slice of half": (lambda x: x[: x.shape[0] // 2 + 1], "f32[S,3]"),
    "slice to nothing": (lambda x: x[3:3], "f32[5]"),
    "tile": (lambda x: jnp.tile(x, (2, 3)), "f32[B,4]"),
    "repeat": (lambda x: jnp.repeat(x, 3, axis=1), "f32[B,4]"),
    "roll": (lambda x: jnp.roll(x, 1, axis=1), "f32[B,4]"),
    "broadcast inner": (lambda x: jnp.broadcast_to(x[:, None], (*x.shape[:1], 3, 4)), "f32[B,4]"),
    "transpose of a broadcast": (
        lambda x: x[:, None] * jnp.broadcast_to(jnp.arange(4.0), (3, 2, 4)).transpose(2, 0, 1)[0],
        "f32[B,2]",
    ),
    "transpose of a returned broadcast": (
        lambda x: jnp.broadcast_to(x[:, None], (x.shape[0], 3, 4)).transpose(1, 2, 0),
        "f32[B,4]",
    ),
    "swap and merge": (lambda x: x.swapaxes(1, 2).reshape(x.shape[0], -1), "f32[B,S,4]"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_moves_as_jax_does(check, case):
    fn, spec = case
    check(fn, spec, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["bool", "i8", "u8", "i32", "f16"])
def test_every_type_moves(check, dtype):
    check(lambda x: x.T.reshape(-1)[::-1][1:4], f"{dtype}[2,3]")


def test_one_unknown_size_needs_no_shape_nodes(check):
    model = check(lambda x: x.reshape(*x.shape[:2], 2, 2), "f32[B,S,4]")
    assert [node.op_type for node in model.graph] == ["Reshape"]


@pytest.mark.parametrize(
    "config",
    [
        [(1, 2, 0), (0, 3, 0)],
        [(-1, 2, 0), (0, -2, 0)],
        [(0, 0, 2), (1, 1, 1)],
        [(-1, 0, 1), (0, -1, 3)],
        [(2, -6, 0), (-4, 4, 0)],
        [(0, 0, 0), (0, 0, 0)],
    ],
    ids=str,
)
def test_pad(check, config):
    check(lambda x: lax.pad(x, np.float32(7), config), "f32[5,4]", rtol=0)
    check(lambda x: lax.pad(x, np.int32(7), config), "i32[5,4]")


def test_pad_of_symbolic_sizes(check):
    check(lambda x: lax.pad(x, 0.0, [(1, 2, 0), (-1, -2, 0)]), "f32[B,4]")
    check(lambda x: lax.pad(x, 0.0, [(0, 1, 2), (0, 0, 1)]), "f32[S,4]")
    check(lambda x: jnp.pad(x, ((0, 0), (x.shape[0], 0))), "f32[B,4]")
    check(lambda x: lax.pad(x, 0.0, [(0, 0, 2)]), "f32[1]")


def test_pads_that_are_negative_at_some_sizes(check):
    sizes = [{"S": 3, "T": 5}, {"S": 5, "T": 3}, {"S": 4, "T": 4}]

    def padded(x, y):
        more = y.shape[0] - x.shape[0]
        return lax.pad(x, 0.0, [(0, more, 0)]), lax.pad(x, 0.0, [(more, 1, 1)])

    check(padded, "f32[S]", "f32[T]", sizes=sizes)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap", "symmetric"])
def test_pads_that_numpy_knows(check, mode):
    check(lambda x: jnp.pad(x, ((0, 0), (2, 1)), mode=mode), "f32[B,5]")


def test_iota(check):
    check(lambda x: x + jnp.arange(x.shape[1]), "f32[B,S]")
    check(lambda x: jnp.arange(x.shape[0]), "f32[S]")
    check(lambda x: lax.broadcasted_iota(jnp.int32, (3, 4, 5), 1) + x, "i32[]")
    check(lambda x: lax.broadcasted_iota(jnp.uint8, (x.shape[0], 4), 0), "f32[S]")
    check(jnp.tril, "f32[B,S,S]")


def test_sizes_are_numbers_too(check):
    check(lambda x: x / x.shape[0] + (x.shape[1] * 2 - 1), "f32[B,S]")
    check(lambda x: x * (x.shape[0] // 2) + x.shape[0] % 3, "f32[S]")
