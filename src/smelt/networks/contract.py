"""Contractions without a compile step: compiled behind the call, and kept for the next one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from smelt.errors import UsageError
from smelt.networks.arguments import check_hashable
from smelt.networks.array_kinds import (
    Back,
    element_type_of,
    is_traced,
    needs_gradient,
    numpy_arrays,
    write_to,
)
from smelt.networks.compile import compile_einsum
from smelt.networks.interleaved import split_operands
from smelt.networks.network import Contraction
from smelt.operators.contraction_paths import Optimize
from smelt.operators.semiring import SEMIRINGS, Semiring

KEPT = 256
"""The most compiled contractions that are kept; the least recently used one is dropped."""


def einsum(
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    casting: str = "safe",
    semiring: str | Semiring = "sum_product",
    optimize: Optimize = "auto",
    memory_limit: int | str | None = None,
    **options: Any,
) -> Any:
    """Contract arrays: ``smelt.einsum("ab,bc->ac", x, y)``, like ``numpy.einsum``.

    ``smelt.contract`` is the same function. The interleaved form ``einsum(x, [0, 1], y, [1, 2], [0,
    2])`` is taken, too. Operands of several element types are converted to the type that NumPy
    promotes them to, or to ``dtype``, by the rule ``casting``; booleans have or and and as sum and
    product. The result is a new array of the kind that came in: NumPy, JAX, PyTorch, or another
    package with DLPack. ``out`` is an array that receives the result and is returned.

    In a function that JAX traces, the call is a primitive with rules for ``jit``, ``vmap``, ``jvp``
    and ``grad``, run by a callback. PyTorch records it for ``backward`` if a tensor needs a
    gradient; with ``out``, and over another semiring, such tensors are refused (E671).

    The first call with an equation, shapes, a type and options compiles the contraction for the
    target ``host``, which has ``options``; the last ``KEPT`` are kept. ``semiring``, ``optimize``
    and ``memory_limit`` are those of ``smelt.compile_einsum``, which also lists the errors. Raises
    UsageError E671 for an array that cannot be read.
    """
    settings = {"optimize": optimize, "memory_limit": memory_limit, **options}
    semiring = _by_name(semiring)
    equation, given = split_operands(operands)
    if dtype is not None:
        _check_casting(given, dtype, casting)
    if is_traced(given) and out is None:
        from smelt.networks.jax_primitive import traced

        hashable = tuple(sorted((name, _hashable(each)) for name, each in settings.items()))
        for name, each in (*hashable, ("semiring", semiring)):
            check_hashable(name, each)
        return traced(equation, given, dtype, semiring, hashable)
    if needs_gradient(given) and out is None and semiring == "sum_product":
        from smelt.networks.torch_function import recorded

        return recorded(equation, given, dtype, settings)
    if needs_gradient([out]):
        raise unrecorded()
    artifact, arrays, back = prepared(
        (equation, *given), dtype=dtype, casting=casting, semiring=semiring, **settings
    )
    (result,) = artifact(*arrays)
    return back(np.asarray(result)) if out is None else _copied_to(out, np.asarray(result))


contract = einsum


def prepared(
    operands: Sequence[Any],
    *,
    dtype: Any = None,
    casting: Any = "safe",
    semiring: str | Semiring = "sum_product",
    optimize: Optimize = "auto",
    memory_limit: int | str | None = None,
    **options: Any,
) -> tuple[Contraction, list[np.ndarray], Back]:
    """Return what a call of ``einsum`` needs: the artifact, its arrays, and the function that
    converts a result to the kind of array that came in."""
    equation, given = split_operands(operands)
    if is_traced(given):
        raise UsageError(
            "E671",
            "an operand is traced by JAX",
            why="JAX traces only smelt.einsum without out=; this call needs numbers",
            fix="call smelt.einsum without out=, or make this call outside of jax.jit and jax.grad",
        )
    if needs_gradient(given):
        raise unrecorded()
    arrays, back = numpy_arrays(given)
    semiring = _by_name(semiring)
    arrays = _converted(arrays, dtype, casting)
    if semiring == "sum_product" and arrays and arrays[0].dtype.kind == "b":
        semiring = "or_and"
    return compiled(equation, arrays, semiring, optimize, memory_limit, options), arrays, back


def _by_name(semiring: str | Semiring) -> str | Semiring:
    """Return ``semiring``, by its name if it equals ``sum_product``, so that names compare."""
    return "sum_product" if semiring == SEMIRINGS["sum_product"] else semiring


def unrecorded() -> UsageError:
    """Return E671: the gradient of a tensor would be lost."""
    return UsageError(
        "E671",
        "a tensor needs a gradient, and this call records none",
        why="gradients are recorded on this machine, over the semiring sum_product, without out=",
        fix="pass tensor.detach(), or call under torch.no_grad()",
    )


def compiled(
    equation: str,
    arrays: Sequence[np.ndarray],
    semiring: str | Semiring,
    optimize: Optimize,
    memory_limit: int | str | None,
    options: dict[str, Any],
) -> Contraction:
    """Return the contraction for ``arrays`` of one element type, from the cache if it has it.

    Options without a hash, such as a finder object, are compiled at each call.
    """
    shapes = tuple(array.shape for array in arrays)
    dtype = arrays[0].dtype if arrays else np.dtype(np.float32)
    optimize = _hashable(optimize)
    settings = tuple(sorted({"views": False, **options}.items()))
    try:
        return _cached_contraction(
            equation, shapes, dtype, semiring, optimize, memory_limit, settings
        )
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
    return _cached_contraction.__wrapped__(
        equation, shapes, dtype, semiring, optimize, memory_limit, settings
    )


def _hashable(optimize: Any) -> Any:
    """Return ``optimize`` with lists as tuples, so that a path can be part of a cache key."""
    if not isinstance(optimize, Sequence) or isinstance(optimize, str | bytes):
        return optimize
    return tuple(tuple(step) if isinstance(step, list) else step for step in optimize)


@lru_cache(KEPT)
def _cached_contraction(
    equation: str,
    shapes: tuple[tuple[int, ...], ...],
    dtype: np.dtype,
    semiring: str | Semiring,
    optimize: Optimize,
    memory_limit: int | str | None,
    settings: tuple[tuple[str, Any], ...],
) -> Contraction:
    """Return the compiled contraction; the arguments are the key of the cache."""
    return compile_einsum(
        equation,
        shapes,
        dtype,
        semiring=semiring,
        optimize=optimize,
        memory_limit=memory_limit,
        **dict(settings),
    )


def _converted(arrays: list[np.ndarray], dtype: Any, casting: Any) -> list[np.ndarray]:
    """Return ``arrays`` as one element type in this machine's order of bytes.

    Raises UsageError E656 if types have no common one, or ``casting`` forbids ``dtype``.
    """
    if not arrays:
        return arrays
    first = arrays[0].dtype
    if dtype is None and first.isnative and all(array.dtype == first for array in arrays):
        return arrays
    try:
        common = np.result_type(*arrays) if dtype is None else element_type_of(dtype)
        common = common.newbyteorder("=")
        return [array.astype(common, casting=casting, copy=False) for array in arrays]
    except (TypeError, ValueError) as error:
        raise _misfit_of_types(str(error)) from error


def _check_casting(operands: Sequence[Any], dtype: Any, casting: Any) -> None:
    """Raise UsageError E656 if ``casting`` forbids ``dtype`` for an operand that has a type.

    JAX and PyTorch convert values that they trace by no such rule.
    """
    try:
        common = element_type_of(dtype)
        types = [element_type_of(each.dtype) for each in operands if hasattr(each, "dtype")]
        wrong = [own for own in types if not np.can_cast(own, common, casting)]
    except (TypeError, ValueError) as error:
        raise _misfit_of_types(str(error)) from error
    if wrong:
        raise _misfit_of_types(f"{wrong[0]} cannot be cast to {common} by the rule {casting!r}")


def _misfit_of_types(why: str) -> UsageError:
    """Return E656: the operands cannot become one element type."""
    return UsageError(
        "E656",
        "the element types of the operands do not fit together",
        why=why.partition("\n")[0],
        fix="convert the operands to one type, or give dtype= and casting='unsafe'",
    )


def _copied_to(out: Any, result: np.ndarray) -> Any:
    """Copy ``result`` into ``out`` and return it; raises UsageError E656 if it does not fit."""
    if not isinstance(out, np.ndarray) and not hasattr(out, "__dlpack__"):
        raise UsageError(
            "E656",
            f"out= is of type {type(out).__name__}",
            why="the result is written to its memory, and it is no array",
            fix="give an array of the shape and element type of the result",
        )
    arrays, _ = numpy_arrays([out])
    (target,) = arrays
    if target.shape != result.shape or not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise UsageError(
            "E656",
            f"out= is {target.dtype}{list(target.shape)}",
            why=f"the result is {result.dtype}{list(result.shape)}",
            fix="give an array of the shape and element type of the result",
        )
    if not target.flags.writeable:
        raise UsageError(
            "E656",
            "out= cannot be written",
            why="its memory is read-only, as that of JAX arrays",
            fix="omit out=, or give an array that can be written",
        )
    write_to(out, result)
    return out
