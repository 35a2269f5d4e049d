"""Names that try to break out of a page, and a report in which everything has them."""

from __future__ import annotations

import onnx_ir as ir

import smelt

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\"'`${alert(1)}&quot;&lt;img src=x onerror=alert(1)>",
    "a\x00b\nc",
    "\u202egnp.exe\u2066",
    "\u2028\u2029",
    "%%SCRIPT%%\\1\\g<0>",
    "\ud800",
    "x" * 1_000_000,
)


def hostile_report(name: str) -> smelt.HtmlReport:
    """Of a model in which everything is called ``name`` that may be."""
    x = ir.val(f"{name}x", ir.DataType.FLOAT, [ir.SymbolicDim(f"{name}d"), 3])
    node = ir.node("Relu", [x], name=f"{name}/{name}/relu", doc_string=name)
    other = ir.node(f"{name}Op", [node.outputs[0]], {name: name}, name=name, domain=name)
    other.outputs[0].name = f"{name}y"
    other.metadata_props["pkg.torch.onnx.name_scopes"] = name
    opsets = {"": 20, name: 1}
    graph = ir.Graph([x], other.outputs, nodes=[node, other], opset_imports=opsets, name=name)
    report = smelt.HtmlReport(name)
    report.history.begin(ir.Model(graph, ir_version=10))
    return report
