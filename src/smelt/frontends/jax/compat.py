"""Types, dims, arrays and jaxprs under JAX names that are not part of its stable public API.

Used here, in ``frames.py``, ``prng.py`` and ``traced_sizes.py`` only. Written for JAX 0.10.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import jax
import numpy as np
from jax import export
from jax._src import config, debugging, literals
from jax._src.export.shape_poly import _DimExpr
from jax._src.lax.lax import _ragged_dot_general_impl, _sort_le_comparator, _sort_lt_comparator
from jax.extend import core as jex_core
from jax.extend.core import primitives
from jax.interpreters import ad, batching, mlir

ClosedJaxpr = jex_core.ClosedJaxpr
Jaxpr = jex_core.Jaxpr
Equation = jex_core.JaxprEqn
Literal = jex_core.Literal
Var = jex_core.Var
ragged_dot_general: Callable[..., Any] = _ragged_dot_general_impl
Primitive: Any = jex_core.Primitive
_JAXPRS = (ClosedJaxpr, Jaxpr)
_DEBUGGING = (debugging.DebugEffect, debugging.OrderedDebugEffect)
user_context: Any = jax.make_user_context
ShapedArray = jax.core.ShapedArray
SymbolicScope = export.SymbolicScope
min_dim: Callable[..., Any] = jax.core.min_dim
max_dim: Callable[..., Any] = jax.core.max_dim
SymbolicDim: Any = _DimExpr
InconclusiveDim = jex_core.InconclusiveDimensionOperation

Atom: TypeAlias = Any
"""A ``Var`` or a ``Literal``."""

Dim: TypeAlias = Any
"""An int, or a symbolic dim of ``jax.export``, whose ``str`` is its expression."""

Aval: TypeAlias = Any
"""A ``ShapedArray``: ``shape`` holds dims, ``dtype`` a NumPy or ml_dtypes dtype."""

sorts_before: Callable[..., Any] = _sort_lt_comparator
sorts_before_or_with: Callable[..., Any] = _sort_le_comparator
"""JAX's ``<`` and ``<=`` in its sort order, where NaN comes last and -0 equals 0."""


def is_symbolic(dim: Dim) -> bool:
    """True if ``dim`` is a symbolic expression, not a number."""
    return bool(export.is_symbolic_dim(dim))


def symbolic_shape(text: str, scope: SymbolicScope) -> tuple[Dim, ...]:
    """Return the dims written in ``text``, separated by commas, with their symbols in ``scope``."""
    return tuple(export.symbolic_shape(text, scope=scope))


def scope_of(dim: Dim) -> SymbolicScope:
    """Return the scope of the symbols in the symbolic ``dim``."""
    scope: SymbolicScope = dim.scope
    return scope


def constraints_of(dim: Dim) -> list[str]:
    """Return the constraints in the scope of ``dim``, as JAX prints them: ``mod(S, 8) == 0``."""
    return constraints_in(scope_of(dim))


def constraints_in(scope: SymbolicScope) -> list[str]:
    """Return the constraints on the symbols of ``scope``, as JAX prints them."""
    return [line.strip() for line in str(scope).splitlines()[1:]]


def has_x64() -> bool:
    """True if 64-bit types are enabled now in this thread."""
    return bool(jax.dtypes.canonicalize_dtype(np.float64) == np.float64)


def x64(enabled: bool) -> AbstractContextManager[Any]:
    """Return a context manager that switches 64-bit types on or off for this thread."""
    context: AbstractContextManager[Any] = jax.enable_x64(enabled)
    return context


def trace_context() -> Hashable:
    """Return the key of all JAX settings that a trace depends on, as JAX's own caches use it."""
    context: Hashable = config.trace_context()
    return context


def make_jaxpr(fn: Any, specs: tuple[Any, ...]) -> tuple[ClosedJaxpr, Any]:
    """Return the jaxpr of ``fn`` for ``specs``, and its output tree of ``ShapeDtypeStruct``."""
    closed, out = jax.make_jaxpr(fn, return_shape=True)(*specs)
    return closed, out


def with_inputs(closed: ClosedJaxpr, inputs: Sequence[Var]) -> ClosedJaxpr:
    """Return ``closed`` with ``inputs``, some of its input variables, as its only inputs."""
    info = closed.jaxpr.debug_info
    by_variable = dict(zip(closed.jaxpr.invars, info.arg_names or (), strict=False))
    names = tuple(by_variable[v] for v in inputs) if info.arg_names else info.arg_names
    debug_info = info._replace(arg_names=names)
    return ClosedJaxpr(closed.jaxpr.replace(invars=[*inputs], debug_info=debug_info), closed.consts)


def struct(shape: tuple[Dim, ...], dtype: Any, weak_type: bool = False) -> Any:
    """Return a ``ShapeDtypeStruct``."""
    make: Callable[..., Any] = jax.ShapeDtypeStruct
    return make(shape, dtype, weak_type=weak_type)


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a pytree; None is not a leaf."""
    return list(jax.tree.leaves(tree))


def aval_of(array: Any) -> Aval:
    """Return the type that JAX gives to an array or a Python number under the current settings."""
    return jax.typeof(array)


def is_extended(dtype: Any) -> bool:
    """True for dtypes that exist in JAX only, such as PRNG keys."""
    return bool(jax.numpy.issubdtype(dtype, jax.dtypes.extended))


def host_array(constant: Any) -> np.ndarray:
    """Return a JAX or NumPy array as a NumPy array, without a copy where JAX allows it."""
    return np.asarray(constant)


def identity(array: Any) -> Hashable:
    """Return a key by which an array is recognized; JAX wraps NumPy memory in ever new objects."""
    if isinstance(array, literals.TypedNdArray):
        array = array.val
    if not isinstance(array, np.ndarray):
        return id(array)
    memory = array.__array_interface__["data"][0]
    return memory, array.shape, array.strides, str(array.dtype)


def platform_choice(platforms: Sequence[Sequence[str] | None]) -> int | None:
    """Return the index of the alternative that a CPU uses; None in ``platforms`` is the default."""
    named = [i for i, names in enumerate(platforms) if names is not None and "cpu" in names]
    candidates = [*named, *(i for i, names in enumerate(platforms) if names is None)]
    return candidates[0] if candidates else None


def inner_jaxprs(equation: Equation) -> Iterator[ClosedJaxpr | Jaxpr]:
    """Yield the jaxprs in the parameters of ``equation``; of platform branches only the CPU's."""
    platforms = equation.params.get("branches_platforms")
    if platforms is not None:
        index = platform_choice(platforms)
        if index is not None:
            yield equation.params["branches"][index]
        return
    for parameter in equation.params.values():
        if isinstance(parameter, _JAXPRS):
            yield parameter
        elif isinstance(parameter, (tuple, list)):
            for item in parameter:
                if isinstance(item, _JAXPRS):
                    yield item


def has_effects(equation: Equation) -> bool:
    """True if ``equation`` has a side effect, such as a write. Prints do not count."""
    return any(not isinstance(effect, _DEBUGGING) for effect in equation.effects)


def is_debugging(equation: Equation) -> bool:
    """True if ``equation`` prints or calls back for debugging."""
    return any(isinstance(effect, _DEBUGGING) for effect in equation.effects)


def short(variable: Atom) -> str:
    """Return the type of a variable as jaxprs print it, ``f32[B,4]``."""
    return short_type(variable.aval)


def short_type(aval: Aval) -> str:
    """Return ``aval`` as jaxprs print it."""
    return str(aval.str_short(short_dtypes=True))


def set_rules(
    primitive: Primitive, reference: Callable[..., Any], batch: Any, derivative: Any
) -> None:
    """Register batching, JVP and XLA lowering of ``primitive``; XLA compiles ``reference``."""
    batching.primitive_batchers[primitive] = batch
    ad.primitive_jvps[primitive] = derivative
    mlir.register_lowering(primitive, mlir.lower_fun(reference, multiple_results=False))


def materialized(tangent: Any) -> Any:
    """Return ``tangent``, with zeros in place of a symbolic zero of JAX."""
    instantiate: Callable[[Any], Any] = ad.instantiate_zeros
    return instantiate(tangent) if isinstance(tangent, ad.Zero) else tangent


def pointwise(body: ClosedJaxpr, shape: tuple[Dim, ...]) -> ClosedJaxpr:
    """Return ``body``, a computation on scalars, mapped over arrays of ``shape``."""
    structs = tuple(struct(shape, variable.aval.dtype) for variable in body.jaxpr.invars)
    return make_jaxpr(mapped(body, len(shape)), structs)[0]


def evaluated(body: ClosedJaxpr, vectors: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the results of ``body``, a computation on scalars, for each element of ``vectors``."""
    return [np.asarray(result) for result in mapped(body, 1)(*vectors)]


def same_computation(a: ClosedJaxpr, b: ClosedJaxpr | None) -> bool:
    """True if both have the same equations on the same types, and no captured constants."""
    return b is not None and not a.consts and not b.consts and str(a.jaxpr) == str(b.jaxpr)


def mapped(body: ClosedJaxpr, rank: int) -> Callable[..., Any]:
    """Return ``body``, a computation on scalars, as a function of arrays of ``rank``."""
    fn: Callable[..., Any] = jex_core.jaxpr_as_fun(body)
    for _ in range(rank):
        fn = jax.vmap(fn)
    return fn


def struct_of(aval: Aval, dtype: Any = None) -> Any:
    """Return ``aval`` as a ``ShapeDtypeStruct``, in ``dtype`` if it is given."""
    weak = dtype is None and bool(getattr(aval, "weak_type", False))
    return struct(tuple(aval.shape), dtype or aval.dtype, weak)


def rebind(equation: Equation, values: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Return the results of the primitive of ``equation`` for other operands and parameters."""
    bound = equation.primitive.get_bind_params(params)
    results = equation.primitive.bind(*values, **bound)
    return list(results) if equation.primitive.multiple_results else [results]


JITTED = ("jit", "pjit")
"""The names of the primitive of a jitted call."""

_PER_OPERAND = ("in_shardings", "in_layouts", "donated_invars")
_PER_RESULT = ("out_shardings", "out_layouts")


def jit_params(
    equation: Equation, body: ClosedJaxpr, per_operand: Sequence[int], per_result: Sequence[int]
) -> dict[str, Any]:
    """Return the parameters of a jitted call whose body becomes ``body``.

    ``body`` takes ``per_operand[i]`` arrays for operand i, returns ``per_result[i]`` for result i.
    """
    params = {**equation.params, "jaxpr": body}
    params |= {name: _repeat_each(params[name], per_operand) for name in _PER_OPERAND}
    return params | {name: _repeat_each(params[name], per_result) for name in _PER_RESULT}


def over_mesh(
    equation: Equation,
    body: Callable[..., Any],
    per_operand: Sequence[int],
    per_result: Sequence[int],
) -> Callable[..., Any]:
    """Return ``body`` mapped over the mesh of a ``shard_map``; counts as in ``jit_params``."""
    params = equation.params
    function: Callable[..., Any] = jax.shard_map(
        body,
        mesh=params["mesh"],
        in_specs=_repeat_each(params["in_specs"], per_operand),
        out_specs=_repeat_each(params["out_specs"], per_result),
        axis_names=set(params["newly_manual_axes"]),
        check_vma=params["check_vma"],
    )
    return function


def _repeat_each(items: Sequence[Any], counts: Sequence[int]) -> tuple[Any, ...]:
    """Return each of ``items`` as many times as its count says."""
    return tuple(item for item, count in zip(items, counts, strict=True) for _ in range(count))


def with_constants(traced: ClosedJaxpr, constants: Sequence[Any], original: Jaxpr) -> ClosedJaxpr:
    """Return ``traced`` with its first inputs fixed to ``constants``, named like ``original``."""
    jaxpr, count = traced.jaxpr, len(constants)
    fixed = jaxpr.replace(
        constvars=[*jaxpr.constvars, *jaxpr.invars[:count]],
        invars=jaxpr.invars[count:],
        debug_info=original.debug_info,
    )
    return ClosedJaxpr(fixed, [*traced.consts, *constants])


def primitive_names() -> tuple[str, ...]:
    """Return the names of JAX's public primitives, sorted."""
    listed = (getattr(primitives, name) for name in dir(primitives) if name.endswith("_p"))
    return tuple(sorted({str(primitive.name) for primitive in listed}))
