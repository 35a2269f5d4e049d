"""Binding specs: let a function bind a primitive of its own while smelt traces.

Lowerings of plain jaxprs need none of this. A plugin may use it for a function whose jaxpr loses
too much::

    binds(Binding("mylib.layers:norm", "mylib.norm", abstract=norm_aval))

While a trace runs, ``mylib.layers.norm(*arrays, **params)`` becomes one equation of the
primitive ``mylib.norm``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from smelt.errors import UsageError
from smelt.frontends.jax import compat, patches


@dataclass(frozen=True)
class Binding:
    """``target`` is ``module:attribute.path``; ``primitive`` the name to bind.

    ``abstract(*avals, **params)`` gives the type of the one result. Positional arguments are
    operands, keyword arguments are parameters of the primitive and must be hashable. Derivatives
    and batching fall back on the original function.
    """

    target: str
    primitive: str
    abstract: Callable[..., Any]

    def primitive_of(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """What binds the primitive in place of ``original``."""
        bind: Callable[..., Any] = _primitive(self, original).bind
        return bind


def binds(binding: Binding) -> Binding:
    """Register ``binding``; raises UsageError E652 if its target has another."""
    wanted = patches.Patch(binding.target, binding.primitive_of)
    known = patches.register(wanted)
    if known != wanted:
        other = getattr(known.replacement, "__self__", None)
        taken = other.primitive if isinstance(other, Binding) else "a patch of smelt"
        raise UsageError(
            "E652",
            f"{binding.target!r} is bound to two primitives",
            at=(taken, binding.primitive),
            fix="remove one of the bindings, or uninstall its package",
        )
    return binding


def _primitive(binding: Binding, original: Callable[..., Any]) -> compat.Primitive:
    primitive = compat.Primitive(binding.primitive)
    primitive.def_abstract_eval(binding.abstract)
    primitive.def_impl(original)

    def batch(args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        return jax.vmap(functools.partial(original, **params), in_axes=tuple(dims))(*args), 0

    def derive(primals: Any, tangents: Any, **params: Any) -> Any:
        directions = tuple(compat.materialized(tangent) for tangent in tangents)
        return jax.jvp(functools.partial(original, **params), tuple(primals), directions)

    compat.set_rules(primitive, original, batch, derive)
    return primitive
