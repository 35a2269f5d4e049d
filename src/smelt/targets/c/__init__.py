"""The ``c`` target: self-contained C99 with weights as data and one planned arena.

It writes ``model.h``, ``model.c`` and the weights; ``model_run(inputs, outputs, arena)`` allocates
nothing. Option ``name`` replaces ``model`` in files, functions and macros.
"""

from __future__ import annotations

from smelt.native.kernels import element_types, kernel_names
from smelt.native.operators import OPERATORS
from smelt.native.schedule import computes
from smelt.native.selection.select_conv_relu import select_conv_relu
from smelt.native.types import C_TYPES
from smelt.passes.pipelines import EXPANDED_OPERATORS, PLANNED
from smelt.program.lower import extensions_among, lowered_operators
from smelt.targets.base import Limits, Target
from smelt.targets.c.emit import emit
from smelt.targets.c.options import Options
from smelt.targets.c.phases import allocate, order
from smelt.targets.c.saved import open_folder

c = Target(
    name="c",
    summary="self-contained C99: no allocation, one planned arena",
    limits=Limits(dtypes=frozenset(C_TYPES), dynamic_dims=False, bounded_dims=True),
    operators=OPERATORS,
    passes=PLANNED,
    kernels=frozenset(lowered_operators()) | EXPANDED_OPERATORS,
    extensions=extensions_among(kernel_names()),
    computes=computes,
    element_types=element_types,
    options=Options,
    select=(select_conv_relu,),
    schedule=order,
    allocate=allocate,
    emit=emit,
    open=open_folder,
)
