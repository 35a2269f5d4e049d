"""Bindings: replace a library function by a primitive of its own while smelt traces.

Lowerings of plain jaxprs need no binding. Use one for a function whose jaxpr loses too much, or
takes long to trace, lower and fuse again::

    binds(Binding("mylib.layers:norm", "mylib.norm", abstract=norm_aval))

While a trace runs, ``mylib.layers.norm(*arrays, **params)`` becomes one equation of the
primitive ``mylib.norm``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
from jax import lax

from smelt.frontends.jax import compat
from smelt.frontends.jax.patching import patches
from smelt.frontends.jax.patching.replacement import Function

Call: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""The operands of a primitive, and its parameters."""

Batched: TypeAlias = Callable[[Sequence[Any], Sequence[int | None]], Sequence[Any] | None]
"""``batched(operands, dims)`` returns the operands with their batch dims in front, or None."""


@dataclass(frozen=True)
class Binding:
    """Replace calls of ``target`` (``module:attribute.path``) by the primitive ``primitive``.

    - ``abstract(*avals, **params)`` returns the type of the one result. Positional arguments are
      operands; keyword arguments are parameters of the primitive and must be hashable.
    - ``arguments`` converts a call of another form to that form. It returns None for a call that
      JAX must trace as usual.
    - ``reference(*operands, **params)`` returns the same result; derivatives and batching use it.
      The default is the original function.
    - ``batched(operands, dims)`` moves the batch dim of each operand to the front (its dim is None
      if it has no batch). It returns None if the primitive cannot take the batch.
    - ``optional``: the module of ``target`` need not be installed.
    - ``parameters``: the names that the function is known to take, empty for any. JAX traces the
      function as usual if its signature differs.
    """

    target: str
    primitive: str
    abstract: Callable[..., Any]
    arguments: Callable[..., Call | None] | None = None
    reference: Function | None = None
    batched: Batched | None = None
    optional: bool = False
    parameters: tuple[str, ...] = ()

    def replacement_for(self, original: Function) -> Function:
        """Return the function that a trace calls instead of ``original``."""
        bind: Function = self.primitive_of(original).bind
        if self.arguments is None:
            return bind
        arguments = self.arguments
        signature = inspect.signature(arguments)

        def call(*args: Any, **keywords: Any) -> Any:
            """Bind the primitive if it covers the arguments, else call the original."""
            try:
                signature.bind(*args, **keywords)
            except TypeError:  # The original accepts the call, or raises the right error.
                return original(*args, **keywords)
            converted = arguments(*args, **keywords)
            if converted is None:
                return original(*args, **keywords)
            operands, params = converted
            return bind(*operands, **params)

        return call

    def primitive_of(self, original: Function) -> compat.Primitive:
        """Return the primitive, whose reference is ``self.reference``, or else ``original``."""
        return _primitive(self, self.reference or original)


def binds(binding: Binding) -> Binding:
    """Register ``binding``.

    Raises UsageError E652 if another module or another primitive has a binding for its target.
    """
    patches.register(
        patches.Patch(
            binding.target,
            binding.replacement_for,
            binding.optional,
            binding.parameters,
            owner=f"{binding.primitive!r} of {binding.abstract.__module__}",
        )
    )
    return binding


def in_front(operand: Any, dim: int) -> Any:
    """Return ``operand`` with ``dim`` moved to the front by one transpose.

    ``jnp.moveaxis`` would add a jitted call to the jaxpr.
    """
    other_dims = [axis for axis in range(operand.ndim) if axis != dim]
    return lax.transpose(operand, (dim, *other_dims)) if dim else operand


@functools.lru_cache(maxsize=256)
def _primitive(binding: Binding, reference: Function) -> compat.Primitive:
    """Return a new JAX primitive for ``binding``, with its rules for types, batches and the JVP."""
    primitive = compat.Primitive(binding.primitive)
    primitive.def_abstract_eval(binding.abstract)
    primitive.def_impl(reference)

    def batch(args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        """Batch by ``binding.batched`` if it accepts the batch, else by vmap of the reference."""
        batched_operands = binding.batched(args, dims) if binding.batched is not None else None
        if batched_operands is not None:
            return primitive.bind(*batched_operands, **params), 0
        return jax.vmap(functools.partial(reference, **params), in_axes=tuple(dims))(*args), 0

    def derive(primals: Any, tangents: Any, **params: Any) -> Any:
        """Return the JVP of the reference."""
        directions = tuple(compat.materialized(tangent) for tangent in tangents)
        return jax.jvp(functools.partial(reference, **params), tuple(primals), directions)

    compat.set_rules(primitive, reference, batch, derive)
    return primitive
