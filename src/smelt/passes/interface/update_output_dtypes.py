"""Cast outputs to other element types: ``update-output-dtypes{dtypes=y:float16}``.

    before   ... ─> y: float32               after   ... ─> Cast(float16) ─> y: float16

``dtypes`` names outputs, or lists one type for each output in order: ``dtypes=float16,int32``.

Needs    (1) an explicit request, because it changes the interface, and the new type may lose
         values.
Keeps    (1) names; (2) outputs that are not named, that have the type already, or that are inputs,
         too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir import provenance
from smelt.ir.build import Builder
from smelt.ir.interface_change import PortChange, ports_of
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import PassContext, assumes, graph_pass

_NUMBERS = (
    *(ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE, ir.DataType.BFLOAT16),
    *(ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64),
    *(ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64),
    ir.DataType.BOOL,
)

DTYPES: Mapping[str, ir.DataType] = {
    **{dtype.name.lower(): dtype for dtype in _NUMBERS},
    "float32": ir.DataType.FLOAT,
    "float64": ir.DataType.DOUBLE,
}


@dataclass(frozen=True)
class RequestedDtypes:
    """``dtypes``: ``name:type`` for some outputs, or one type for each output."""

    dtypes: tuple[str, ...] = ()


@graph_pass(
    "update_output_dtypes",
    __doc__,
    exactness=assumes("the requested types hold the results"),
    default=False,  # needs 1
    options_type=RequestedDtypes,
    source="Core ML MIL: common::update_output_dtypes",
)
def update_output_dtypes(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: RequestedDtypes
) -> None:
    """Add a Cast to each output whose requested type differs from its own."""
    graph = cx.model.graph
    for value, dtype in _requested_types(options.dtypes, graph.outputs).items():
        if value.dtype == dtype or rewriter.exhausted:  # keeps 2
            continue
        if value.dtype not in _NUMBERS:
            raise _refusal(value.name or "", "it holds no numbers")
        if value.is_graph_input():
            continue
        stats.interface += [PortChange(*port, dtype=dtype) for port in ports_of(graph, value)]
        _cast(cx, value, dtype)
        rewriter.count += 1
        stats.fired["output cast"] += 1


def _requested_types(
    dtypes: Sequence[str], outputs: Sequence[ir.Value]
) -> dict[ir.Value, ir.DataType]:
    """Return the requested type of each output; raises UsageError E603 for a bad request."""
    if dtypes and not any(":" in item for item in dtypes):
        if len(dtypes) != len(outputs):
            raise _refusal(
                ",".join(dtypes), f"the model has {len(outputs)} outputs, not {len(dtypes)}"
            )
        pairs = [(value.name or "", item) for value, item in zip(outputs, dtypes, strict=True)]
    else:
        pairs = []
        for text in dtypes:
            name, _, item = text.rpartition(":")
            pairs.append((name, item))
    by_name = {value.name: value for value in outputs}
    requested: dict[ir.Value, ir.DataType] = {}
    for name, item in pairs:
        if name not in by_name:
            raise _refusal(name, f"the outputs are {', '.join(str(n) for n in by_name)}")
        if item.lower() not in DTYPES:
            raise _refusal(f"{name}:{item}", f"the types are {', '.join(DTYPES)}")
        dtype = DTYPES[item.lower()]
        if requested.setdefault(by_name[name], dtype) != dtype:
            raise _refusal(f"{name}:{item}", "two types are requested for one output")
    return requested


def _refusal(what: str, why: str) -> UsageError:
    """Return error E603 for the request ``what``."""
    return UsageError(
        "E603",
        f"update-output-dtypes cannot use {what!r}",
        why=why,
        fix="`smelt explain update-output-dtypes` shows the form of its options",
    )


def _cast(cx: PassContext, value: ir.Value, dtype: ir.DataType) -> None:
    """Replace the output ``value`` by its Cast to ``dtype``, which takes over name and metadata."""
    graph, producer = cx.model.graph, value.producer()
    sources = [producer] if producer is not None else []
    origin = provenance.merge(sources, "update_output_dtypes")
    cast = Builder(cx.model, graph, cx.shapes, origin=origin).op("Cast", value, to=int(dtype))
    name, value.name = value.name, cast.name  # keeps 1
    cast.name = name
    cast.type, cast.shape, cast.doc_string = ir.TensorType(dtype), value.shape, value.doc_string
    cast.metadata_props.update(value.metadata_props)
    value.doc_string = None
    for index, output in enumerate(graph.outputs):
        if output is value:
            graph.outputs[index] = cast
