"""Binding specs: let a function bind a primitive of its own while smelt traces.

Lowerings of plain jaxprs need none of this. A plugin may use it for a function whose jaxpr loses
too much, or takes long to trace, lower and fuse again::

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

from smelt.frontends.jax import compat, patches
from smelt.frontends.jax.replacement import Function

Call: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""The operands of a primitive, and its parameters."""

Batched: TypeAlias = Callable[[Sequence[Any], Sequence[int | None]], Sequence[Any] | None]


@dataclass(frozen=True)
class Binding:
    """``target`` is ``module:attribute.path``; ``primitive`` the name to bind.

    ``abstract(*avals, **params)`` gives the type of the one result. Positional arguments are
    operands, keyword arguments are parameters of the primitive and must be hashable; where a call
    is not of that form, ``arguments`` makes it so, or returns None for a call that the function
    itself has to trace. ``reference(*operands, **params)`` computes the same, by the function
    itself if it is not given: derivatives and batching fall back on it. ``batched(operands, dims)``
    puts the dim of a batch, None for operands without one, in front where the primitive takes
    that; it returns None where it does not. The module of an ``optional`` target need not be there.
    ``parameters`` are the names of those that the function is known to take, empty for any: the
    function itself is traced if it takes others.
    """

    target: str
    primitive: str
    abstract: Callable[..., Any]
    arguments: Callable[..., Call | None] | None = None
    reference: Function | None = None
    batched: Batched | None = None
    optional: bool = False
    parameters: tuple[str, ...] = ()

    def in_place_of(self, original: Function) -> Function:
        """What is called instead of ``original``."""
        bind: Function = self.primitive_of(original).bind
        if self.arguments is None:
            return bind
        arguments = self.arguments
        signature = inspect.signature(arguments)

        def call(*args: Any, **keywords: Any) -> Any:
            try:
                signature.bind(*args, **keywords)
            except TypeError:  # The function itself takes the call, or says what is wrong with it.
                return original(*args, **keywords)
            found = arguments(*args, **keywords)
            return original(*args, **keywords) if found is None else bind(*found[0], **found[1])

        return call

    def primitive_of(self, original: Function) -> compat.Primitive:
        """The primitive, of which ``original`` is the reference if there is no other."""
        return _primitive(self, self.reference or original)


def binds(binding: Binding) -> Binding:
    """Register ``binding``; raises UsageError E652 if its target has one of another module, or
    one of another primitive."""
    patches.register(
        patches.Patch(
            binding.target,
            binding.in_place_of,
            binding.optional,
            binding.parameters,
            owner=f"{binding.primitive!r} of {binding.abstract.__module__}",
        )
    )
    return binding


def in_front(operand: Any, dim: int) -> Any:
    """``operand`` with ``dim`` as its first one, without the equation of a jitted function."""
    others = [other for other in range(operand.ndim) if other != dim]
    return lax.transpose(operand, (dim, *others)) if dim else operand


@functools.lru_cache(maxsize=256)
def _primitive(binding: Binding, reference: Function) -> compat.Primitive:
    primitive = compat.Primitive(binding.primitive)
    primitive.def_abstract_eval(binding.abstract)
    primitive.def_impl(reference)

    def batch(args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        moved = binding.batched(args, dims) if binding.batched is not None else None
        if moved is not None:
            return primitive.bind(*moved, **params), 0
        return jax.vmap(functools.partial(reference, **params), in_axes=tuple(dims))(*args), 0

    def derive(primals: Any, tangents: Any, **params: Any) -> Any:
        directions = tuple(compat.materialized(tangent) for tangent in tangents)
        return jax.jvp(functools.partial(reference, **params), tuple(primals), directions)

    compat.set_rules(primitive, reference, batch, derive)
    return primitive
