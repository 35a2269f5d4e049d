"""``check``: trace a function, run the model in ONNX Runtime, and compare with JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
import onnx_ir as ir
import pytest

from smelt.frontends.jax import trace
from smelt.frontends.jax.call import specs
from smelt.frontends.jax.compat import x64 as jax_x64
from smelt.frontends.jax.open_sizes.symbols import symbols_in
from smelt.frontends.onnx import to_proto
from smelt.ir.cloning import clone_model
from smelt.ir.worklist import Worklist
from smelt.passes.base import PassContext
from smelt.passes.canonicalize.legalize_dot_general import legalize_dot_general


def legalized(model: ir.Model) -> ir.Model:
    """Return ``model`` with ONNX operators for each DotGeneral; assert that its shapes infer alike."""
    cx = PassContext.of(model)
    Worklist(cx.rewriter(), legalize_dot_general.rules).run()
    return model


Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


def opened(model: ir.Model) -> Run:
    """Return an ONNX Runtime session of ``model`` without optimizations; the model is used up."""
    import onnx
    import onnxruntime as ort

    proto = to_proto(model, spent=True)
    onnx.checker.check_model(proto, full_check=False)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return lambda inputs: session.run(None, dict(zip(names, inputs, strict=True)))


def random_inputs(structs: Sequence[Any], sizes: Mapping[str, int], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    arrays = []
    for struct in structs:
        shape = tuple(_size(dim, sizes) for dim in struct.shape)
        dtype = np.dtype(struct.dtype)
        if dtype.kind == "b":
            array = rng.integers(0, 2, shape).astype(dtype)
        elif dtype.kind in "iu":
            array = rng.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)
        else:
            array = (rng.standard_normal(shape) * 2).astype(dtype)
        arrays.append(array)
    return arrays


def _size(dim: Any, sizes: Mapping[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    names = (name.partition("__over_") for name in symbols_in(dim))
    values = {"".join(each): sizes[each[0]] // int(each[2] or 1) for each in names}
    return int(dim._evaluate(values))


def assert_same(
    got: Sequence[np.ndarray], expected: Sequence[Any], rtol: float, atol: float
) -> None:
    assert len(got) == len(expected)
    for ours, theirs in zip(got, map(np.asarray, expected), strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        if theirs.dtype.kind in "fV":
            np.testing.assert_allclose(
                np.asarray(ours, np.float64), np.asarray(theirs, np.float64), rtol=rtol, atol=atol
            )
        else:
            np.testing.assert_array_equal(ours, theirs)


def _call(
    fn: Callable[..., Any], keywords: tuple[str, ...], static: Mapping[str, Any], *arguments: Any
) -> Any:
    """Return ``fn`` as a function of positional arguments; the last ones become ``keywords``."""
    count = len(arguments) - len(keywords)
    named = dict(zip(keywords, arguments[count:], strict=True))
    return fn(*arguments[:count], **named, **static)


Check = Callable[..., ir.Model]

SIZES = ({"B": 1, "S": 5, "T": 4}, {"B": 3, "S": 7, "T": 2})


ONE_BY_ONE = {"elementwise", "indexing", "linalg"}
"""Folders of functions that are few operators each, and whose edges XLA may simplify by jit. JAX
compiles all others as one, which takes half as long as operator by operator, at each size."""


@pytest.fixture
def check(request: pytest.FixtureRequest) -> Check:
    """``check(fn, *specs, inputs=None, ...)``: same dtypes, shapes and numbers as JAX.

    ``inputs`` are lists of arrays to feed; without them random ones, at two sizes where dims are
    symbolic. ``compiled`` runs JAX by jit, with ``compiler_options``. Returns the model as traced.
    """
    by_jit = ONE_BY_ONE.isdisjoint(request.path.parts)

    def check(
        fn: Callable[..., Any],
        *given: Any,
        inputs: Sequence[Sequence[Any]] | None = None,
        sizes: Sequence[Mapping[str, int]] = SIZES,
        rtol: float = 2e-5,
        atol: float = 1e-6,
        compiled: bool = by_jit,
        compiler_options: Mapping[str, bool] | None = None,
        **options: Any,
    ) -> ir.Model:
        x64 = options.get("x64", False)
        kwargs = options.get("kwargs", {})
        model = trace(fn, *given, **options)
        run = opened(legalized(clone_model(model)))
        tree = jax.tree.structure((*given, *kwargs.values()))
        structs = specs.resolve((*given, *kwargs.values()), options.get("constraints", ()), x64)[1]
        symbolic = any(not isinstance(dim, int) for s in structs for dim in s.shape)
        if inputs is None:
            used = sizes if symbolic else sizes[:1]
            inputs = [random_inputs(structs, size, seed) for seed, size in enumerate(used)]
        call = partial(_call, fn, tuple(kwargs), options.get("static", {}))
        source = jax.jit(call, compiler_options=compiler_options) if compiled else call
        for given_arrays in inputs:
            arrays = [np.asarray(a, s.dtype) for a, s in zip(given_arrays, structs, strict=True)]
            with jax_x64(x64):
                # jnp.asarray compiles a copy for each new shape.
                expected = jax.tree.leaves(
                    source(*jax.tree.unflatten(tree, jax.device_put(arrays)))
                )
                expected = [
                    np.asarray(leaf if isinstance(leaf, jax.Array) else jax.numpy.asarray(leaf))
                    for leaf in expected
                ]
            assert_same(run(arrays), expected, rtol, atol)
        return model

    return check


@pytest.fixture
def computed() -> Callable[[ir.Model, Sequence[np.ndarray]], list[np.ndarray]]:
    """Return ``computed(model, inputs)``, which returns the outputs of the unoptimized model."""
    return lambda model, inputs: opened(legalized(clone_model(model)))(inputs)
