"""What this JAX writes for a function when it exports it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
from jax import export

from smelt.frontends.jax import compat
from smelt.frontends.stablehlo import jax_names
from smelt.frontends.stablehlo.same import Functions, unified


@dataclass(frozen=True)
class Written:
    """A function of StableHLO: its one result, its arguments and the functions that it calls.

    ``module`` holds them all.
    """

    result: Any
    arguments: Sequence[Any]
    functions: Functions
    module: Any

    def matched(self, value: Any, functions: Functions) -> list[Any]:
        """The operands of this function that ``value`` is the result of, or nothing.

        ``functions`` are those of the module of ``value``.
        """
        return unified(self.result, value, self.arguments, (self.functions, functions))


@lru_cache(maxsize=256)
def written_out(function: Callable[..., Any], count: int, dtype: str, rank: int) -> Written:
    """What ``function`` of ``count`` operands of ``dtype`` and ``rank`` is exported as."""
    struct = jax.ShapeDtypeStruct((2,) * rank, dtype)
    with compat.x64("64" in dtype):
        exported = export.export(jax.jit(function), platforms=("cpu",))(*[struct] * count)
    module = jax_names.read_module(exported)
    functions = jax_names.functions_of(module)
    block = functions["main"].regions[0].blocks[0]
    result = list(block.operations)[-1].operation.operands[0]
    return Written(result, list(block.arguments), functions, module)
