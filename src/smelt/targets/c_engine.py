"""Targets that emit C by ``native``: the operators, types and sizes that they share."""

from __future__ import annotations

from typing import Any

from smelt.native.kernels import element_types, kernel_names
from smelt.native.operators import OPERATORS
from smelt.native.schedule import computes
from smelt.native.selection.select_conv_relu import select_conv_relu
from smelt.native.types import C_TYPES
from smelt.passes.pipelines import EXPANDED_OPERATORS, PLANNED
from smelt.program.lower import extensions_among, lowered_operators
from smelt.targets.base import Limits, Target


def target_of_c(name: str, summary: str, **phases: Any) -> Target:
    """Return a target with sizes that are fixed or bounded, and the kernels of ``native``.

    ``phases`` are the fields of Target that differ: options, schedule, allocate, emit and open.
    """
    return Target(
        name=name,
        summary=summary,
        limits=Limits(dtypes=frozenset(C_TYPES), dynamic_dims=False, bounded_dims=True),
        operators=OPERATORS,
        passes=PLANNED,
        kernels=frozenset(lowered_operators()) | EXPANDED_OPERATORS,
        extensions=extensions_among(kernel_names()),
        computes=computes,
        element_types=element_types,
        select=(select_conv_relu,),
        **phases,
    )
