"""The ``c`` target: self-contained C99 with weights as data and one planned arena.

It writes ``model.h``, ``model.c`` and the weights; ``model_run(inputs, outputs, arena)`` allocates
nothing. Option ``name`` replaces ``model`` in files, functions and macros.
"""

from __future__ import annotations

from smelt.targets.c.emit import emit
from smelt.targets.c.options import Options
from smelt.targets.c.phases import allocate, order
from smelt.targets.c.saved import open_folder
from smelt.targets.c_engine import target_of_c

c = target_of_c(
    "c",
    "self-contained C99: no allocation, one planned arena",
    options=Options,
    schedule=order,
    allocate=allocate,
    emit=emit,
    open=open_folder,
)
