"""Operators of the graph that ONNX Runtime runs in the end, after its own optimizer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime

ONE_OF_ITS_KIND = {
    "QLinearMatMul": "integer product",
    "QGemm": "integer product",
    "MatMulIntegerToFloat": "integer product",
    "DynamicQuantizeMatMul": "integer product",
}
"""Operators that stand for each other: which one it is says where Transposes and sums went."""


def run_in_the_end(model: onnx.ModelProto, x: np.ndarray) -> tuple[Counter[str], list[np.ndarray]]:
    """How often each operator stands in the optimized graph, and the outputs for ``x``."""
    counts, session = open_in_the_end(model)
    return counts, session.run(None, {session.get_inputs()[0].name: x})


def open_in_the_end(model: onnx.ModelProto) -> tuple[Counter[str], onnxruntime.InferenceSession]:
    """How often each operator stands in the optimized graph, subgraphs included."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    with TemporaryDirectory() as folder:
        path = Path(folder) / "optimized.onnx"
        options.optimized_model_filepath = str(path)
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        counts = Counter(node.op_type for node in _nodes(onnx.load(path).graph))
    return counts, session


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


def lost(before: Counter[str], after: Counter[str]) -> dict[str, tuple[int, int]]:
    """Operators on integers that are fewer after, and conversions that are more.

    A quantized Concat may have become one that only moves integers.
    """
    first, second = _by_kind(before), _by_kind(after)
    concats = max(0, second["Concat"] - first["Concat"])
    second["QLinearConcat"] += concats
    fewer = {k: (n, second[k]) for k, n in first.items() if _on_integers(k) and second[k] < n}
    conversions = ("QuantizeLinear", "DequantizeLinear")
    more = {k: (first[k], second[k]) for k in conversions if second[k] > first[k]}
    return fewer | more


def _by_kind(counts: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for op_type, count in counts.items():
        found[ONE_OF_ITS_KIND.get(op_type, op_type)] += count
    return found


def _on_integers(op_type: str) -> bool:
    known = ("integer product", "ConvInteger", "MatMulInteger", "MatMulNBits")
    return op_type.startswith("QLinear") or op_type in known
