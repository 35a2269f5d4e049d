"""The ``wasm`` target: an npm-ready folder with a WebAssembly module and the JavaScript to call it.

It writes ``model.wasm``, ``model.mjs``, ``model.d.ts`` and ``package.json``; the module imports
nothing and allocates nothing.
"""

from __future__ import annotations

from smelt.targets.c_engine import target_of_c
from smelt.targets.wasm.emit import emit
from smelt.targets.wasm.options import Options
from smelt.targets.wasm.phases import allocate, order
from smelt.targets.wasm.saved import open_folder

wasm = target_of_c(
    "wasm",
    "WebAssembly and JavaScript for browsers, Node and edge workers",
    options=Options,
    schedule=order,
    allocate=allocate,
    emit=emit,
    open=open_folder,
)
