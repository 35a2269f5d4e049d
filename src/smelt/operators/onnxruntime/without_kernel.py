"""ONNX operators and element types without a CPU kernel in ONNX Runtime and without a replacement.

``runtime_gaps.py`` lists the operators that have a replacement;
``tests/operators/onnxruntime/test_without_kernel.py`` compares both tables with the installed
runtime. All operators work on float16, because the runtime casts to float32 around a missing
kernel.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.opset import opset_of
from smelt.ir.value_facts.element_type import ElementTypes
from smelt.operators.onnxruntime.runtime_gaps import typed_input
from smelt.operators.registry import find

T = ir.DataType

WITH_BFLOAT16 = frozenset(
    {
        *("BitCast", "Cast", "Compress", "Concat", "Constant", "ConstantOfShape", "Flatten"),
        *("Gather", "GatherElements", "GatherND", "Identity", "If", "IsInf", "IsNaN", "Loop"),
        *("Optional", "OptionalGetElement", "OptionalHasElement", "RandomNormalLike"),
        *("RandomUniformLike", "Reshape", "ReverseSequence", "Scan", "ScatterElements"),
        *("ScatterND", "SequenceAt", "SequenceConstruct", "Shape", "Shrink", "Sign", "Slice"),
        *("Split", "Squeeze", "TensorScatter", "Transpose", "Unsqueeze"),
    }
)
"""Operators with a kernel for bfloat16 up to release 1.31; 1.32 has more. LayerNormalization has
one that mixes its types."""

WITHOUT: Mapping[str, tuple[ir.DataType, ...]] = {
    **dict.fromkeys(
        (
            *("AveragePool", "Conv", "ConvTranspose", "Det", "GlobalAveragePool", "GlobalMaxPool"),
            *("Hardmax", "InstanceNormalization", "LRN", "LpPool", "MaxUnpool", "Mean", "RNN"),
        ),
        (T.DOUBLE,),
    ),
    **dict.fromkeys(("CumSum", "ReduceMean", "ReduceProd", "ReduceSum"), (T.UINT32, T.UINT64)),
    **dict.fromkeys(
        ("ArgMax", "ArgMin", "Pow", "ReduceMax", "ReduceMin", "TopK"),
        (T.UINT64,),
    ),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), (T.INT64, T.UINT64, T.STRING)),
    **dict.fromkeys(("NonZero", "Pad", "Trilu"), (T.STRING,)),
    "Einsum": (T.INT8, T.INT16, T.UINT8, T.UINT16, T.UINT32, T.UINT64),
    "Gemm": (T.INT32, T.INT64, T.UINT32, T.UINT64),
    "GridSample": (
        *(T.BOOL, T.INT8, T.INT16, T.INT32, T.INT64),
        *(T.UINT8, T.UINT16, T.UINT32, T.UINT64, T.STRING),
    ),
    "Resize": (T.BOOL, T.DOUBLE, T.INT16, T.INT64, T.UINT16, T.UINT32, T.UINT64, T.STRING),
    "Unique": (T.BOOL, T.INT16, T.INT32, T.UINT8, T.UINT16, T.UINT32, T.UINT64),
}
"""Element types that an operator has no kernel for."""


def lacks_bfloat16(node: ir.Node) -> bool:
    """True if the runtime has no kernel for ``node`` on numbers of bfloat16."""
    if node.domain:
        return True
    if node.op_type in ("ScatterElements", "ScatterND"):
        return node.attributes.get_string("reduction", "none") != "none"
    return node.op_type not in WITH_BFLOAT16


def without_kernel(model: ir.Model) -> Iterator[tuple[ir.Node, ir.DataType]]:
    """Yield the nodes that keep ONNX Runtime from opening ``model``, with the element type.

    Nodes of domains that smelt does not declare are skipped, and so are bodies of functions.
    """
    types = ElementTypes(opset_of(model))
    for node in scope.nodes_below(model.graph):
        values = (*node.inputs, *node.outputs)
        has_bfloat16 = any(v is not None and types.of(v) == T.BFLOAT16 for v in values)
        is_declared = not node.domain or find(node.domain, node.op_type) is not None
        if has_bfloat16 and is_declared and lacks_bfloat16(node):
            yield node, T.BFLOAT16
        elif not node.domain and node.op_type in WITHOUT:
            value = node.inputs[typed_input(node.op_type)]
            dtype = None if value is None else types.of(value)
            if dtype in WITHOUT[node.op_type]:
                assert dtype is not None
                yield node, dtype


def warn_without_kernel(model: ir.Model, stacklevel: int = 2) -> None:
    """Warn about the operators that ONNX Runtime has no kernel for, and name the remedy."""
    counts: dict[tuple[str, ir.DataType], int] = {}
    for node, dtype in without_kernel(model):
        key = node.op_type, dtype
        counts[key] = counts.get(key, 0) + 1
    if not counts:
        return
    listed = [f"{count} {name} of {dtype.name.lower()}" for (name, dtype), count in counts.items()]
    shown = ", ".join(listed[:4]) + (f" and {len(listed) - 4} kinds" if len(listed) > 4 else "")
    narrow = any(dtype == T.BFLOAT16 for _, dtype in counts)
    remedy = (
        "smelt.optimize(model) computes bfloat16 in float32, unless it is told to keep it"
        if narrow
        else "smelt.compile(model, target='host') computes them"
    )
    warnings.warn(
        f"ONNX Runtime cannot open the model: it has no kernel for {shown}; {remedy}",
        stacklevel=stacklevel + 1,
    )
