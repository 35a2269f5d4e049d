"""Give image inputs and outputs channels first: ``image-input-preprocess{inputs=x outputs=y}``.

    before   x: N,H,W,C ─> ...                           after   x: N,C,H,W ─> Transpose ─> ...

The model still computes with channels last; ``reduce-transposes`` then moves or removes the
Transposes. Named outputs change the same way.

Needs    (1) inputs and outputs that the options name, of known rank 3 or more; (2) no complex
         numbers, whose last axis holds real and imaginary parts.
Keeps    (1) all other inputs and outputs. The pass changes the interface, so it runs on request
         only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.errors import UsageError, did_you_mean
from smelt.ir.complex_pairs import complex_type_of
from smelt.ir.interface_change import PortChange, ports_of
from smelt.ir.node_inputs import set_input
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, PassContext, graph_pass


@dataclass(frozen=True)
class Images:
    """Names of the ``inputs`` and ``outputs`` whose last axis holds channels."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@graph_pass(
    "image_input_preprocess",
    __doc__,
    exactness=EXACT,
    options_type=Images,
    default=False,
    before=("reduce_transposes",),
    source="Core ML MIL: common::image_input_preprocess",
)
def image_input_preprocess(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Images
) -> None:
    """Move the channels of the named inputs and outputs first.

    Raises UsageError E603 for a bad name.
    """
    graph = cx.model.graph
    inputs = [_find(name, graph.inputs, "input") for name in options.inputs]  # keeps 1
    outputs = [_find(name, graph.outputs, "output") for name in options.outputs]
    for value in inputs:
        if value.is_graph_output() or value.is_initializer():
            raise _refusal(value.name, "it is an output too, or has a default")
    for value in outputs:
        if value.producer() is None:
            raise _refusal(value.name, "it is not computed")
    for value in (*inputs, *outputs):
        assert value.shape is not None
        perm = (0, len(value.shape) - 1, *range(1, len(value.shape) - 1))
        stats.interface += [PortChange(*port, perm=perm) for port in ports_of(graph, value)]
    for value in inputs:
        _take_channels_first(value, rewriter, stats)
    for value in outputs:
        _give_channels_first(value, graph, rewriter, stats)
    if inputs or outputs:
        cx.shapes.redeclare_interface()


def put_channels_first(model: ir.Model, names: Sequence[str] | str) -> None:
    """Run only this pass on the inputs and outputs called ``names``.

    Raises UsageError E108 for a name that the model does not have, and for a repeated name.
    """
    listed = (names,) if isinstance(names, str) else tuple(names)
    inputs = [value.name for value in model.graph.inputs]
    outputs = [value.name for value in model.graph.outputs]
    for name in listed:
        if name not in inputs and name not in outputs:
            problem = f"channels_first names {name!r}, which is neither an input nor an output"
            known = [str(n) for n in (*inputs, *outputs)]
            raise UsageError(
                "E108",
                problem,
                fix=did_you_mean(name, known, "`smelt inspect` shows inputs and outputs"),
                why=f"the model has {', '.join(known)}",
            )
    if len(set(listed)) < len(listed):
        raise UsageError(
            "E108",
            "channels_first names an input or output twice",
            why="the pass moves each input or output to NCHW once",
            fix="name it once",
        )
    cx = PassContext.of(model)
    chosen = Images(
        tuple(name for name in listed if name in inputs),
        tuple(name for name in listed if name in outputs),
    )
    image_input_preprocess.run(cx, chosen)
    cx.shapes.restore_interface()


def _find(name: str, values: Sequence[ir.Value], kind: str) -> ir.Value:
    """Return the value called ``name``; raises UsageError E603 if it is missing or unfit."""
    for value in values:
        if value.name == name:
            if value.shape is None or len(value.shape) < 3:  # needs 1
                raise _refusal(name, "its rank is not known to be 3 or more")
            if complex_type_of(value) is not None:  # needs 2
                raise _refusal(name, "its last axis holds the parts of complex numbers")
            return value
    raise _refusal(name, f"the model has no {kind} of that name")


def _refusal(name: str | None, why: str) -> UsageError:
    """Return error E603 for the input or output ``name``."""
    return UsageError(
        "E603",
        f"image-input-preprocess cannot change the layout of {name!r}",
        why=why,
        fix="name an input or output of the model with 3 dims or more",
    )


def _take_channels_first(value: ir.Value, rewriter: Rewriter, stats: RuleStats) -> None:
    """Change the shape of an input to channels first and transpose it for its readers."""
    readers = [use for use in value.uses() if use.node not in rewriter.dead]
    assert value.shape is not None
    dims = value.shape.dims
    value.shape = ir.Shape([dims[0], dims[-1], *dims[1:-1]])
    if readers:
        first = next(iter(value.graph)) if value.graph is not None else None
        assert first is not None
        b = rewriter.builder(first, [], "image_input_preprocess")
        last = b.op("Transpose", value, perm=[0, *range(2, len(dims)), 1])
        for use in readers:
            set_input(use.node, use.idx, last)
    rewriter.count += 1
    stats.fired["input with channels first"] += 1


def _give_channels_first(
    value: ir.Value, graph: ir.Graph, rewriter: Rewriter, stats: RuleStats
) -> None:
    """Transpose an output to channels first; the Transpose takes over its name."""
    producer = value.producer()
    assert producer is not None
    assert value.shape is not None
    rank = len(value.shape)
    b = rewriter.builder(producer, [producer], "image_input_preprocess")
    b.before = None
    first = b.op("Transpose", value, perm=[0, rank - 1, *range(1, rank - 1)])
    first.name, value.name = value.name, None
    for index, output in enumerate(graph.outputs):
        if output is value:
            graph.outputs[index] = first
    rewriter.count += 1
    stats.fired["output with channels first"] += 1
