"""Compile ONNX text for the host, and compare its results with those of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.runtime.runner import run
from smelt.targets.base import Artifact, Plan
from smelt.targets.host import host
from smelt.targets.host.options import Options

Compile: TypeAlias = Callable[..., Artifact]
Agree: TypeAlias = Callable[..., tuple[np.ndarray, ...]]


def compile_host(source: str | ir.Model, engine: str = "numpy") -> Artifact:
    """Return the host artifact of a model or of ONNX text, compiled without passes."""
    model = text.parse(source) if isinstance(source, str) else source
    plan = Plan(model, Options(engine=engine))
    host.schedule(plan)
    host.allocate(plan)
    return host.emit(plan)


def agree(
    source: str | ir.Model,
    *inputs: np.ndarray,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    engine: str = "numpy",
) -> tuple[np.ndarray, ...]:
    """Assert that two calls on the host return what ONNX Runtime returns; return those results."""
    model = text.parse(source) if isinstance(source, str) else source
    expected: Sequence[np.ndarray] = run(model, inputs)  # type: ignore[assignment]
    artifact = compile_host(model, engine)
    kept = [np.array(array) for array in inputs]
    first = artifact(*inputs)
    results = artifact(*inputs)
    for result, again, wanted in zip(first, results, expected, strict=True):
        assert result.dtype == wanted.dtype
        assert result.shape == wanted.shape
        if wanted.dtype.kind in "biu":
            np.testing.assert_array_equal(result, wanted)
        else:
            np.testing.assert_allclose(
                result.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol
            )
        np.testing.assert_array_equal(result, again)
    for array, before in zip(inputs, kept, strict=True):
        np.testing.assert_array_equal(array, before)
    return results


@pytest.fixture(params=["numpy", pytest.param("native", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest) -> str:
    """Run every test of the host with both engines.

    The native one compiles C for each test, so those are slow.
    """
    return str(request.param)


@pytest.fixture(name="compile_host")
def compile_host_fixture(engine: str) -> Compile:
    return partial(compile_host, engine=engine)


@pytest.fixture(name="agree")
def agree_fixture(engine: str) -> Agree:
    return partial(agree, engine=engine)
