"""Export a JAX function, to recognize its StableHLO in a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
from jax import export

from smelt.frontends.jax import compat
from smelt.frontends.stablehlo import jax_names
from smelt.frontends.stablehlo.producers import Functions, match_values, returned_by


@dataclass(frozen=True)
class Pattern:
    """A StableHLO function to look for: its results, its arguments and the functions it calls.

    MLIR values live as long as their module, so the pattern holds ``module``, too.
    """

    results: Sequence[Any]
    arguments: Sequence[Any]
    functions: Functions
    module: Any

    def match(self, values: Sequence[Any], functions: Functions) -> list[Any]:
        """Return the operands for which this function computes ``values``; [] if it does not.

        ``functions`` are the functions of the module of ``values``.
        """
        if len(values) != len(self.results):
            return []
        return match_values(self.results, values, self.arguments, (self.functions, functions))


@lru_cache(maxsize=256)
def exported_pattern(function: Callable[..., Any], dtype: str, ranks: tuple[int, ...]) -> Pattern:
    """Return the export of ``function`` for operands of ``dtype`` and ``ranks``."""
    structs = [jax.ShapeDtypeStruct((2,) * rank, dtype) for rank in ranks]
    with compat.x64("64" in dtype):
        exported = export.export(jax.jit(function), platforms=("cpu",))(*structs)
    module = jax_names.read_module(exported)
    functions = jax_names.functions_of(module)
    block = functions["main"].regions[0].blocks[0]
    return Pattern(returned_by(block), list(block.arguments), functions, module)
