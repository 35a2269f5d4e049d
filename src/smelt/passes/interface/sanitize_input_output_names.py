"""Give inputs and outputs names that programming languages accept.

    before   (input.1, /fc/out, float) => ...
    after    (input_1, _fc_out, float_) => ...

Names become ``[A-Za-z_][A-Za-z0-9_]*``: every other character becomes ``_``. Reserved words of C,
C++ and Core ML get a ``_`` at the end, and a name that is already used gets a number. The metadata
of the value keeps the old name as ``smelt.original_name``.

Needs    (1) an explicit request, because it changes the interface.
Keeps    (1) valid names, which have priority over new ones; (2) names of values inside the model,
         in branches, loop bodies and functions.
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
    """Rename the inputs and outputs whose name is no identifier."""
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
        name_before = value.name or ""
        value.name = new = names.free(sanitized(name_before))
        value.metadata_props.setdefault(META_KEY, name_before)
        stats.interface += [PortChange(*port, name=new) for port in ports_of(graph, value)]
        stats.fired["name sanitized"] += 1
        rewriter.count += 1
    forget_names(cx.model)


def sanitized(name: str) -> str:
    """Return ``name`` as an identifier; unchanged if it is one already."""
    identifier = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not identifier or identifier[0].isdigit():
        identifier = f"_{identifier}"
    return f"{identifier}_" if identifier in _RESERVED else identifier
