"""Artifacts of contractions as a primitive of JAX; derivatives and batches are contractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from smelt.errors import Unsupported
from smelt.networks.derivatives import batched
from smelt.networks.expansion import Expansion, Summand
from smelt.networks.jax_call import called_by_xla, is_library, why_no_library
from smelt.networks.jax_primitive import einsum_p, read
from smelt.operators.contraction import parse

if TYPE_CHECKING:
    from smelt.networks.differentiable import Differentiable

artifact_p = Primitive("smelt_artifact")
"""Calls an artifact; the parameter ``program`` is a ``_Program``."""
artifact_p.multiple_results = True


class _Program:
    """An artifact, which JAX compares by identity."""

    def __init__(self, artifact: Differentiable) -> None:
        """Keep the artifact and its expansion."""
        self.artifact = artifact
        self.expansion: Expansion = artifact.expansion

    def summand(self, each: Summand, operands: Sequence[Any], equation: str = "") -> Any:
        """Return the contraction of ``each`` on ``operands``, by another ``equation`` if given."""
        found = einsum_p.bind(
            *operands,
            equation=equation or each.equation,
            semiring=self.expansion.semiring,
            options=tuple(sorted(self.expansion.options.items())),
        )
        return found if each.factor == 1 else found * each.factor


def traced_call(artifact: Differentiable, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of ``artifact`` for values that JAX traces.

    Raises UsageError E671 for values of other shapes or element types.
    """
    values = read(inputs)
    artifact.expansion.check([each.shape for each in values], [each.dtype for each in values])
    program = artifact.__dict__.setdefault("_in_jax", _Program(artifact))
    return tuple(artifact_p.bind(*values, program=program))


def route_of(artifact: Differentiable, shapes: Sequence[tuple[int, ...]] | None) -> str:
    """Return how compiled programs call ``artifact``: ``ffi``, or ``callback`` with the reason."""
    expansion = artifact.expansion
    if shapes is None:
        declared = [expansion.shapes[number] for number in expansion.inputs]
        if not all(isinstance(dim, int) for shape in declared for dim in shape):
            return "callback: sizes are not known"
        shapes = [tuple(int(str(dim)) for dim in shape) for shape in declared]
    operands = [jax.ShapeDtypeStruct(shape, expansion.dtype) for shape in shapes]
    why = why_no_library(artifact, operands)
    return f"callback: {why}" if why else "ffi"


def _results(operands: Sequence[Any], program: _Program) -> list[tuple[int, ...]]:
    """Return the shapes of the results."""
    return program.expansion.result_shapes([each.shape for each in operands])


def _abstract(*operands: Any, program: _Program) -> Any:
    """Return the types of the results."""
    dtype = program.expansion.dtype
    return [jax.core.ShapedArray(shape, dtype) for shape in _results(operands, program)]


def _eager(*operands: Any, program: _Program) -> list[Any]:
    """Return the results for JAX arrays."""
    return [jnp.asarray(each) for each in program.artifact(*map(np.asarray, operands))]


def _by_callback(*operands: Any, program: _Program) -> list[Any]:
    """Return the results by a call of the host."""
    dtype = program.expansion.dtype
    results = [jax.ShapeDtypeStruct(each, dtype) for each in _results(operands, program)]
    program.artifact.opened()  # JAX would hide an error that is raised in the callback

    def run(*arrays: Any) -> list[np.ndarray]:
        """Return the results for JAX arrays."""
        return [np.asarray(each) for each in program.artifact(*map(np.asarray, arrays))]

    return list(jax.pure_callback(run, results, *operands))


def _by_library(*operands: Any, program: _Program) -> list[Any]:
    """Return the results by a call of the compiled library, or else of the host."""
    if not is_library(program.artifact, operands):
        return _by_callback(*operands, program=program)
    dtype = program.expansion.dtype
    results = [jax.ShapeDtypeStruct(each, dtype) for each in _results(operands, program)]
    return called_by_xla(program.artifact, results, operands)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, program: _Program) -> tuple[Any, Any]:
    """Return the results, and their tangents as sums of contractions."""
    expansion = program.expansion
    results = artifact_p.bind(*primals, program=program)
    if expansion.semiring != "sum_product":
        raise Unsupported(
            "E102",
            f"a contraction over {expansion.semiring} has no derivative",
            why="only sums of products are linear in each operand",
            fix="differentiate a contraction over sum_product",
        )
    values = expansion.whole(primals, jnp.asarray)
    changes = dict(zip(expansion.inputs, tangents, strict=True))
    found: list[Any] = []
    for result, summands in zip(results, expansion.results, strict=True):
        total: Any = None
        for each in summands:
            for place, number in enumerate(each.operands):
                if number not in changes or type(changes[number]) is ad.Zero:
                    continue
                operands = [values[other] for other in each.operands]
                operands[place] = changes[number]
                term = program.summand(each, operands)
                total = term if total is None else total + term
        found.append(ad.Zero(result.aval.to_tangent_aval()) if total is None else total)
    return results, found


def _batch(
    operands: Sequence[Any], axes: Sequence[int | None], *, program: _Program
) -> tuple[list[Any], list[int]]:
    """Return the results with one more dim, which comes first."""
    expansion = program.expansion
    values = expansion.whole(operands, jnp.asarray)
    axis_of = dict(zip(expansion.inputs, axes, strict=True))
    found = []
    for summands in expansion.results:
        total: Any = None
        for each in summands:
            own = [values[number] for number in each.operands]
            own_axes = [axis_of.get(number) for number in each.operands]
            ranks = [
                value.ndim - (axis is not None) for value, axis in zip(own, own_axes, strict=True)
            ]
            if all(axis is None for axis in own_axes):
                term = program.summand(each, own)[None]
            else:
                wider = batched(parse(each.equation, ranks), own_axes)
                term = program.summand(each, own, str(wider))
            total = term if total is None else total + term
        found.append(total)
    size = next(
        value.shape[axis] for value, axis in zip(operands, axes, strict=True) if axis is not None
    )
    full = [jnp.broadcast_to(each, (size, *each.shape[1:])) for each in found]
    return full, [0] * len(full)


artifact_p.def_abstract_eval(_abstract)
artifact_p.def_impl(_eager)
ad.primitive_jvps[artifact_p] = _jvp
batching.primitive_batchers[artifact_p] = _batch
mlir.register_lowering(artifact_p, mlir.lower_fun(_by_callback, multiple_results=True))
mlir.register_lowering(
    artifact_p, mlir.lower_fun(_by_library, multiple_results=True), platform="cpu"
)
