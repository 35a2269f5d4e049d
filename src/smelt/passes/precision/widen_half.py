"""Compute in float32 instead of float16 and bfloat16: ``widen-half{types=bfloat16}``.

    before   x: f16 ─> MatMul(w: f16) ─> Softmax ─> y: f16
    after    x: f16 ─> Cast ─> MatMul(Cast(w)) ─> Softmax ─> Cast ─> y: f16

For runtimes without kernels for these types: some refuse the model, others cast around each node.
Inputs, outputs and stored weights keep their types; everything between becomes float32. ``types``
lists the types to widen, both by default.

Needs    (1) a node that computes in such a type. A node that only moves elements does not count,
         nor does one for which ONNX Runtime has a bfloat16 kernel.
Keeps    (1) a model that reads the bits of such numbers, passes them to an undeclared operator, or
         holds sequences or optional values of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt import operators
from smelt.errors import UsageError
from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.rewrite import Rewriter
from smelt.ir.symbolic_dims.invented_dims import every_value
from smelt.ir.worklist import RuleStats
from smelt.operators.onnxruntime.without_kernel import lacks_bfloat16
from smelt.passes.base import PassContext, graph_pass, rounding

WIDE = ir.DataType.FLOAT
HALF = {"float16": ir.DataType.FLOAT16, "bfloat16": ir.DataType.BFLOAT16}

MOVES = frozenset(
    {
        *("Cast", "Concat", "Constant", "ConstantOfShape", "Flatten", "Gather", "GatherElements"),
        *("GatherND", "Identity", "If", "Loop", "Reshape", "Scan", "ScatterElements", "ScatterND"),
        *("Shape", "Size", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"),
    }
)
"""Operators that only move elements; runtimes have them for all types."""

BITS = frozenset({"BitCast", "Bitcast"})
"""Operators that read the bits of a number."""

TYPED = ("to", "dtype", "output_dtype", "softmax_precision")
"""Attributes that name the element type of a result or of an intermediate value."""

INLINE = 16
"""Constants of up to this many elements are converted; larger ones are cast at run time."""


@dataclass(frozen=True)
class Types:
    """``types``: the element types to widen; any other name raises UsageError E603."""

    types: tuple[str, ...] = ("float16", "bfloat16")

    def __post_init__(self) -> None:
        for name in self.types:
            if name not in HALF:
                raise UsageError(
                    "E603",
                    f"widen-half cannot widen {name}",
                    why=f"it widens {' and '.join(HALF)} only",
                    fix="for instance: widen-half{types=bfloat16}",
                )

    @property
    def types_to_widen(self) -> frozenset[ir.DataType]:
        """The element types to widen."""
        return frozenset(HALF[name] for name in self.types)


@graph_pass(
    "widen_half",
    __doc__,
    exactness=rounding(64, "intermediate results keep the bits of float32"),
    default=False,
    options_type=Types,
)
def widen_half(cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Types) -> None:
    """Widen the whole model, or record a miss with the reason why it cannot be."""
    half = options.types_to_widen
    nodes = list(scope.nodes(cx.model))
    computing = [node for node in nodes if _computes(node, half)]
    if not computing or rewriter.exhausted:  # needs 1
        return
    reason = next(filter(None, (_obstacle(node, half) for node in nodes)), None)
    reason = reason or _obstacle_of_model(cx.model, half)
    returned = [(value, value.dtype) for value in cx.model.graph.outputs]
    if reason is not None:  # keeps 1
        stats.miss("model in float32", reason, computing[0])
        return
    inner = _inner_values(cx.model, half)
    for graph in list(scope.graphs(cx.model)):
        outside = [*graph.initializers.values()]
        outside += list(graph.inputs) if graph is cx.model.graph else []
        for value in dict.fromkeys(outside):
            if value.dtype in half:
                _cast_after(cx, graph, value)
    for value in inner:
        value.type = ir.TensorType(WIDE)
    for node in nodes:
        _widen_attributes(node, half)
    for value, dtype in dict(returned).items():
        if value in inner and dtype is not None:
            _cast_output(cx, value, dtype)
    rewriter.count += 1
    stats.fired["model in float32"] += 1


def _computes(node: ir.Node, half: frozenset[ir.DataType]) -> bool:
    """True if ``node`` computes in a type of ``half`` that runtimes may lack."""
    types = {v.dtype for v in (*node.inputs, *node.outputs) if v is not None} & half
    if HALF["float16"] in types and (node.domain or node.op_type not in MOVES):
        return True
    return HALF["bfloat16"] in types and lacks_bfloat16(node)


def _obstacle(node: ir.Node, half: frozenset[ir.DataType]) -> str | None:
    """Return why ``node`` prevents widening, else None.

    A node that reads bits, or whose types no declaration lists, would change its meaning.
    """
    narrow = [v for v in (*node.inputs, *node.outputs) if v is not None and v.dtype in half]
    if narrow and node.op_type in BITS:
        return "a node reads the bits of a number"
    if narrow and node.domain and operators.find(node.domain, node.op_type) is None:
        return f"no declaration lists the types that {node.domain}.{node.op_type} takes"
    return None


def _obstacle_of_model(model: ir.Model, half: frozenset[ir.DataType]) -> str | None:
    """Return why functions, sequences or results of subgraphs prevent widening, else None."""
    if model.functions:
        return "functions have to be inlined first"
    for value in every_value(model):
        if value.dtype in half and not isinstance(value.type, ir.TensorType):
            return "there are sequences or optional values of these types"
    inner = _inner_values(model, half)
    for graph in scope.graphs(model):
        kept = (v for v in graph.outputs if v.dtype in half and v not in inner)
        if graph is not model.graph and any(True for _ in kept):
            return "a subgraph returns an input or a constant directly"
    return None


def _inner_values(model: ir.Model, half: frozenset[ir.DataType]) -> dict[ir.Value, None]:
    """Return the values in ``half`` types that become float32: all but inputs and stored weights.

    Values of subgraphs are included; their inputs, too.
    """
    kept = {value for graph in scope.graphs(model) for value in graph.initializers.values()}
    kept.update(model.graph.inputs)
    return dict.fromkeys(v for v in every_value(model) if v.dtype in half and v not in kept)


def _cast_after(cx: PassContext, graph: ir.Graph, value: ir.Value) -> None:
    """Let all nodes that read ``value`` read it in float32; graph outputs keep the value itself."""
    uses = list(value.uses())
    if not uses:
        return
    first = next(iter(graph), None)
    b = Builder(cx.model, graph, cx.shapes, before=first)
    tensor = value.const_value if not value.is_graph_input() else None
    if tensor is not None and tensor.size <= INLINE:
        wide = b.constant(tensor.numpy().astype(np.float32), name=value.name)
    else:
        wide = b.op("Cast", value, to=int(WIDE))
        wide.shape = value.shape
    for use in uses:
        use.node.replace_input_with(use.idx, wide)


def _widen_attributes(node: ir.Node, half: frozenset[ir.DataType]) -> None:
    """Change element types and tensors in the attributes of ``node`` to float32."""
    for name, attribute in list(node.attributes.items()):
        if attribute.is_ref():
            continue
        if name in TYPED and attribute.type == ir.AttributeType.INT:
            if attribute.as_int() in {int(dtype) for dtype in half}:
                node.attributes[name] = ir.AttrInt64(name, int(WIDE))
        elif attribute.type == ir.AttributeType.TENSOR:
            tensor = attribute.as_tensor()
            if tensor.dtype in half:
                wide = ir.Tensor(tensor.numpy().astype(np.float32), name=tensor.name)
                node.attributes[name] = ir.AttrTensor(name, wide)


def _cast_output(cx: PassContext, value: ir.Value, dtype: ir.DataType) -> None:
    """Replace the output ``value`` by its Cast to ``dtype``, which takes over its name."""
    graph = cx.model.graph
    cast = Builder(cx.model, graph, cx.shapes).op("Cast", value, to=int(dtype))
    value.name, cast.name = cast.name, value.name
    cast.type, cast.shape = ir.TensorType(dtype), value.shape
    for index, output in enumerate(graph.outputs):
        if output is value:
            graph.outputs[index] = cast
