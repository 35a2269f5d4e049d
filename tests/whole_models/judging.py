"""What JAX says, what a model of ours says, and how far they are apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import onnx_ir as ir
from whole_models.whole import Sizes, WholeModel

import smelt
from smelt.frontends.jax.call import specs
from smelt.runtime.runner import open_runner


def traced(model: WholeModel, **options: Any) -> ir.Model:
    """``model`` as smelt traces it."""
    return smelt.trace(
        model.function, *model.specs, constraints=model.constraints, x64=model.x64, **options
    )


def assert_computes_the_same(model: WholeModel, conversions: Sequence[ir.Model]) -> None:
    """Each of ``conversions`` gives what JAX gives, at every size of ``model``."""
    source = jax.jit(model.function) if model.compiled else model.function
    runners = [open_runner(conversion) for conversion in conversions]
    for seed, sizes in enumerate(model.sizes):
        arguments = arguments_of(model, np.random.default_rng(seed), sizes)
        with jax.enable_x64(model.x64):
            expected = [np.asarray(leaf) for leaf in jax.tree.leaves(source(*arguments))]
        given = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
        for run in runners:
            _assert_close(run(*given), expected)


def arguments_of(model: WholeModel, rng: np.random.Generator, sizes: Sizes) -> tuple[Any, ...]:
    """The arguments of ``model`` at ``sizes``."""
    if model.inputs is not None:
        return model.inputs(rng, sizes)
    _, structs = specs.resolve(model.specs, model.constraints, model.x64)
    return tuple(_drawn(rng, struct, sizes) for struct in structs)


def _drawn(rng: np.random.Generator, struct: Any, sizes: Sizes) -> np.ndarray:
    shape = [d if isinstance(d, int) else int(d._evaluate(dict(sizes))) for d in struct.shape]
    if np.dtype(struct.dtype).kind in "iu":
        return rng.integers(0, 1000, shape).astype(struct.dtype)
    return rng.standard_normal(shape).astype(struct.dtype)


def _assert_close(got: Sequence[Any], expected: Sequence[np.ndarray]) -> None:
    assert len(got) == len(expected)
    for ours, theirs in zip(map(np.asarray, got), expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if theirs.dtype.kind == "f":
            # What cancels has the error of what it was made from: the largest number sets it.
            scale = float(np.abs(theirs).max(initial=0.0))
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5 * scale)
        else:
            np.testing.assert_array_equal(ours, theirs)
