"""What functions of libraries are judged by: the numbers of JAX at two sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import smelt

SIZES = (3, 7)


class Case(NamedTuple):
    """``make`` gives the function; its arguments are float32 of ``shapes``, in which N is open."""

    library: str
    make: Callable[[Any], Callable[..., Any]]
    shapes: tuple[tuple[Any, ...], ...] = (("N", 4),)
    tolerance: float = 1e-4


def agrees(case: Case) -> None:
    """The function of ``case`` gives what JAX gives, optimized, at every size."""
    library = pytest.importorskip(case.library, reason="the extra wild is not installed")
    fn = case.make(library)
    specs = [f"f32[{','.join(map(str, shape))}]" for shape in case.shapes]
    run = smelt.compile(fn, *specs)
    for seed, size in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        shapes = [[size if dim == "N" else dim for dim in shape] for shape in case.shapes]
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        expected = jax.tree.leaves(jax.jit(fn)(*arrays))
        for got, want in zip(run(*arrays), expected, strict=True):
            scale = float(np.abs(want).max(initial=1.0))
            np.testing.assert_allclose(
                got, want, rtol=case.tolerance, atol=case.tolerance * scale / 10
            )
