"""Lower a scatter that applies a function, as ``x.at[i].apply(f)`` does.

An element that several indices name gets the function as often.
"""

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
    """Lower a scatter that applies the function ``body`` to each indexed element of the operand.

    An index may occur several times. The number of occurrences is counted for each element; round n
    applies the function to the elements that occur more than n times.
    """
    closed = body if isinstance(body, ClosedJaxpr) else ClosedJaxpr(body, list(constants))

    def scattered(x: Any, starts: Any, updates: Any) -> Any:
        """Return ``x`` with the function applied to each element, as often as indices name it."""
        function = mapped(closed, x.ndim)
        ones = jnp.ones(updates.shape, jnp.int32)
        counts = lax.scatter_add(jnp.zeros(x.shape, jnp.int32), starts, ones, numbers, mode=mode)

        def one_round(round_number: Any, x: Any) -> Any:
            """Apply the function to elements that more than ``round_number`` indices name."""
            return jnp.where(counts > round_number, function(x, x)[0], x)

        return one_round(0, x) if unique else lax.fori_loop(0, counts.max(initial=0), one_round, x)

    structs = tuple(struct(tuple(aval.shape), aval.dtype) for aval in cx.avals_in)
    return cx.inline(make_jaxpr(scattered, structs)[0], cx.operands)
