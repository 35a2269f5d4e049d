"""Give inputs and outputs names that programming languages accept.

    before   (input.1, /fc/out, float) => ...
    after    (input_1, _fc_out, float_) => ...

Names become ``[A-Za-z_][A-Za-z0-9_]*``: every other character turns into ``_``. Words of C, C++
and Core ML get a ``_`` at the end, and a name that is taken a number. The old name is kept in the
metadata of the value, as ``smelt.original_name``.

Needs    (1) a request: it changes the interface.
Keeps    (1) good names, which win over those made here; (2) values inside the model, and all of
         branches, loop bodies and functions.
"""

from __future__ import annotations

import re

from smelt.ir import reserved_words, scope
from smelt.ir.interface_change import PortChange, ports_of
from smelt.ir.names import Names, forget_names, values_of
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass

META_KEY = "smelt.original_name"

_RESERVED = reserved_words.C | reserved_words.CORE_ML


@graph_pass(
    "sanitize_input_output_names",
    __doc__,
    exactness=EXACT,
    default=False,  # needs 1
    source="Core ML MIL: common::sanitize_input_output_names",
)
def sanitize_input_output_names(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    graph = cx.model.graph
    interface = dict.fromkeys((*graph.inputs, *graph.outputs))  # keeps 2
    bad = [v for v in interface if v.name is not None and sanitized(v.name) != v.name]  # keeps 1
    if not bad:
        return
    every = (value for g in scope.graphs(cx.model) for value in values_of(g))
    names = Names(value.name for value in every if value.name is not None)
    for value in bad:
        if rewriter.exhausted:
            break
        old = value.name or ""
        value.name = new = names.free(sanitized(old))
        value.metadata_props.setdefault(META_KEY, old)
        stats.interface += [PortChange(*port, name=new) for port in ports_of(graph, value)]
        stats.fired["name sanitized"] += 1
        rewriter.count += 1
    forget_names(cx.model)


def sanitized(name: str) -> str:
    """``name`` as an identifier; itself if it is one already."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not plain or plain[0].isdigit():
        plain = f"_{plain}"
    return f"{plain}_" if plain in _RESERVED else plain
