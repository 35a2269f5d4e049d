"""Contractions as primitives of JAX, with rules for jit, vmap, jvp and grad.

A compiled JAX program calls the compiled library by XLA's foreign function interface on the CPU,
where there is a library, else the host by ``jax.pure_callback``. Derivatives and batches are
contractions again, so they run in smelt, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from smelt.errors import Unsupported, UsageError
from smelt.networks.derivatives import (
    backward,
    batched,
    factor_arrays,
    optimize_for_derivative,
)
from smelt.networks.equations import equation_of
from smelt.networks.jax_call import called_by_xla, is_library
from smelt.networks.network import Contraction
from smelt.operators.contraction import Equation, parse, sizes_of
from smelt.targets.host.options import default_engine

einsum_p = Primitive("smelt_einsum")
"""Parameters: ``equation`` without ellipses, ``semiring``, and ``options`` of ``smelt.einsum``."""


def traced(
    text: str, operands: Sequence[Any], dtype: Any, semiring: Any, options: tuple[Any, ...]
) -> Any:
    """Return the contraction of values that JAX traces.

    Element types are promoted as JAX does.
    """
    arrays = read(operands)
    try:
        common = jnp.result_type(*arrays) if dtype is None else dtype
        arrays = [each.astype(common) for each in arrays]
    except (TypeError, ValueError) as error:
        raise _unreadable(error) from error
    equation, _ = equation_of(text, [each.shape for each in arrays])
    if semiring == "sum_product" and arrays[0].dtype == bool:
        semiring = "or_and"
    return einsum_p.bind(*arrays, equation=str(equation), semiring=semiring, options=options)


def read(operands: Sequence[Any]) -> list[Any]:
    """Return ``operands`` as values of JAX; raises UsageError E671."""
    try:
        return [jnp.asarray(each) for each in operands]
    except (TypeError, ValueError) as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> UsageError:
    """Return E671: an operand is no array of JAX."""
    return UsageError(
        "E671",
        "an operand cannot be read as a JAX array",
        why=str(error).partition("\n")[0],
        fix="pass arrays of numbers that have a common element type",
    )


def _run(*arrays: Any, equation: str, semiring: Any, options: tuple[Any, ...]) -> np.ndarray:
    """Return the contraction as a NumPy array."""
    from smelt.networks.contract import einsum

    found = einsum(equation, *map(np.asarray, arrays), semiring=semiring, **dict(options))
    return np.asarray(found)


def _read(equation: str, values: Sequence[Any]) -> tuple[Equation, dict[str, Any]]:
    """Return the equation, and the size of each label."""
    shapes = [
        value.aval.shape if ad.is_undefined_primal(value) else value.shape for value in values
    ]
    parsed = parse(equation, [len(shape) for shape in shapes])
    return parsed, sizes_of(parsed.terms, shapes)


def _abstract(*operands: Any, equation: str, **_: Any) -> Any:
    """Return the type of the result."""
    parsed, sizes = _read(equation, operands)
    return jax.core.ShapedArray(tuple(sizes[label] for label in parsed.out), operands[0].dtype)


def _eager(*operands: Any, **parameters: Any) -> Any:
    """Return the contraction of JAX arrays."""
    return jnp.asarray(_run(*operands, **parameters))


def _by_callback(*operands: Any, **parameters: Any) -> Any:
    """Return the contraction within a compiled JAX program, which calls smelt on the host."""
    result = _abstract_of(operands, parameters["equation"])
    _compiled(operands, parameters)  # JAX would hide errors that are raised in the callback
    return jax.pure_callback(lambda *arrays: _run(*arrays, **parameters), result, *operands)


def _by_library(*operands: Any, **parameters: Any) -> Any:
    """Return the contraction by a call of its compiled library, or else of the host."""
    artifact = _compiled(operands, parameters, wait=True)
    if artifact is None or not is_library(artifact, operands):
        return _by_callback(*operands, **parameters)
    result = _abstract_of(operands, parameters["equation"])
    (found,) = called_by_xla(artifact, [result], operands)
    return found


def _compiled(
    operands: Sequence[Any], parameters: dict[str, Any], wait: bool = False
) -> Contraction | None:
    """Return the contraction, compiled now or kept; None if JAX does not know the sizes.

    ``wait``: it is compiled to a library, unless the engine is ``numpy``.
    """
    from smelt.networks.contract import compiled

    if not all(isinstance(size, int) for each in operands for size in each.shape):
        return None
    options = dict(parameters["options"])
    choices = (options.pop("optimize"), options.pop("memory_limit"))
    if wait and options.get("engine", default_engine()) == "auto":
        options["engine"] = "native"
    return compiled(parameters["equation"], operands, parameters["semiring"], *choices, options)


def _abstract_of(operands: Sequence[Any], equation: str) -> Any:
    """Return shape and element type of the result."""
    parsed, sizes = _read(equation, operands)
    shape = tuple(sizes[label] for label in parsed.out)
    return jax.ShapeDtypeStruct(shape, operands[0].dtype)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
    """Return the result and its tangent: a contraction for each operand that has one."""
    result = einsum_p.bind(*primals, **parameters)
    total: Any = None
    for number, tangent in enumerate(tangents):
        if type(tangent) is ad.Zero:
            continue
        if parameters["semiring"] != "sum_product":
            raise Unsupported(
                "E102",
                f"a contraction over {parameters['semiring']} has no derivative",
                why="only sums of products are linear in each operand",
                fix="differentiate a contraction over sum_product",
            )
        operands = [*primals[:number], tangent, *primals[number + 1 :]]
        term = einsum_p.bind(*operands, **parameters)
        total = term if total is None else total + term
    return result, ad.Zero(result.aval.to_tangent_aval()) if total is None else total


def _transpose(cotangent: Any, *operands: Any, equation: str, **parameters: Any) -> list[Any]:
    """Return a cotangent per operand: that of the one which JAX leaves undefined, None for others.

    JAX calls this for ``grad``: the contraction is linear in the undefined operand.
    """
    (number,) = [i for i, value in enumerate(operands) if ad.is_undefined_primal(value)]
    found: list[Any] = [None] * len(operands)
    if type(cotangent) is ad.Zero:
        found[number] = ad.Zero(operands[number].aval)
        return found
    parsed, sizes = _read(equation, operands)
    gradient, factors = backward(parsed, sizes, number)
    others = [value for i, value in enumerate(operands) if i != number]
    extra = map(jnp.asarray, factor_arrays(factors, cotangent.dtype))
    options = dict(parameters.pop("options"))
    options["optimize"] = optimize_for_derivative(options.get("optimize", "auto"))
    found[number] = einsum_p.bind(
        *(*others, cotangent, *extra),
        equation=str(gradient),
        options=tuple(sorted(options.items())),
        **parameters,
    )
    return found


def _batch(
    operands: Sequence[Any], axes: Sequence[int | None], *, equation: str, **parameters: Any
) -> tuple[Any, int]:
    """Return the contraction with a batch dim, and the position of that dim in the result: 0."""
    unbatched = [
        value.ndim - (axis is not None) for value, axis in zip(operands, axes, strict=True)
    ]
    wider = batched(parse(equation, unbatched), axes)
    return einsum_p.bind(*operands, equation=str(wider), **parameters), 0


einsum_p.def_abstract_eval(_abstract)
einsum_p.def_impl(_eager)
ad.primitive_jvps[einsum_p] = _jvp
ad.primitive_transposes[einsum_p] = _transpose
batching.primitive_batchers[einsum_p] = _batch
mlir.register_lowering(einsum_p, mlir.lower_fun(_by_callback, multiple_results=False))
mlir.register_lowering(
    einsum_p, mlir.lower_fun(_by_library, multiple_results=False), platform="cpu"
)
