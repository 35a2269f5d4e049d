"""The ``wasm`` target: an npm-ready folder with a WebAssembly module and the JavaScript to call it.

It writes ``model.wasm``, ``model.mjs``, ``model.d.ts`` and ``package.json``; the module imports
nothing and allocates nothing.
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
from smelt.targets.wasm.emit import emit
from smelt.targets.wasm.options import Options
from smelt.targets.wasm.phases import allocate, order
from smelt.targets.wasm.saved import open_folder

wasm = Target(
    name="wasm",
    summary="WebAssembly and JavaScript for browsers, Node and edge workers",
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
