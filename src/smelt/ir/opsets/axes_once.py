"""Normalizes lists of axes that repeat an axis or name an axis beyond the rank.

``Squeeze<axes=[1, 1]>`` and reductions over ``[1, -2]`` of three dims mean one axis.
MeanVarianceNormalization ignores axes beyond the rank, such as those of its default. To ONNX
Runtime an empty list of axes of a Squeeze is an absent list: all dims of size 1 go. Rules and
lowerings count axes, so these forms must not reach them.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.index import NodeIndex
from smelt.ir.listed_axes import NORM, listed_axes, names_no_axes, without_repeats
from smelt.ir.node_inputs import set_input
from smelt.ir.opset import REDUCTIONS
from smelt.ir.shapes.inference import ShapeInference

OPERATORS = ("Squeeze", *sorted(REDUCTIONS), NORM)


def axes_once(model: ir.Model, shapes: ShapeInference, index: NodeIndex) -> None:
    """Rewrite lists of constant axes in ``model``, in place, so that each axis occurs once."""
    for node in index.nodes(("", op_type) for op_type in OPERATORS):
        listed = listed_axes(node)
        if not listed:
            if node.op_type == "Squeeze" and names_no_axes(node):
                _without_axes(node)
            continue
        rank = _rank(node)
        axes = without_repeats(listed, rank)
        if node.op_type == NORM and rank is not None:
            axes = [axis for axis in axes if -rank <= axis < rank]
        if axes == listed or not axes:
            continue
        if len(node.inputs) > 1:
            assert node.graph is not None
            builder = Builder(model, node.graph, shapes, before=node)
            set_input(node, 1, builder.const_i64(axes))
        else:
            node.attributes["axes"] = ir.AttrInt64s("axes", axes)


def _without_axes(node: ir.Node) -> None:
    """Let the Squeeze ``node`` remove every dim of size 1, and clear its inferred shape."""
    node.attributes.pop("axes", None)
    if len(node.inputs) > 1:
        set_input(node, 1, value=None)
        node.resize_inputs(1)
    node.outputs[0].shape = None


def _rank(node: ir.Node) -> int | None:
    """Return the rank of the first input; None if its shape is unknown."""
    source = node.inputs[0]
    return len(source.shape) if source is not None and source.shape is not None else None
