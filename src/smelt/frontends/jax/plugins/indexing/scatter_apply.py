"""``scatter`` with a function, applied to an element once for each index that names it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from smelt.frontends.jax.compat import ClosedJaxpr, make_jaxpr, mapped, struct
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand


def applied(
    cx: Lowering, body: Any, constants: Any, unique: bool, numbers: Any, mode: Any
) -> list[Operand]:
    """Count how often each element is named; each round applies the function where it is due."""
    closed = body if isinstance(body, ClosedJaxpr) else ClosedJaxpr(body, list(constants))

    def scattered(x: Any, starts: Any, updates: Any) -> Any:
        """Apply the function to each named element, as often as the element is named."""
        function = mapped(closed, x.ndim)
        ones = jnp.ones(updates.shape, jnp.int32)
        due = lax.scatter_add(jnp.zeros(x.shape, jnp.int32), starts, ones, numbers, mode=mode)

        def rounds(done: Any, x: Any) -> Any:
            return jnp.where(due > done, function(x, x)[0], x)

        return rounds(0, x) if unique else lax.fori_loop(0, due.max(initial=0), rounds, x)

    structs = tuple(struct(tuple(aval.shape), aval.dtype) for aval in cx.avals_in)
    return cx.inline(make_jaxpr(scattered, structs)[0], cx.operands)
