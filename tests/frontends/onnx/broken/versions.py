"""Versions that do not exist, or that lack operators of the model."""

from __future__ import annotations

import onnx
from frontends.onnx.broken.change import Cases, changed, graph, text

FUNCTION = '<domain: "f", opset_import: ["" : 20]> F (a) => (b) { b = Relu(a) }'
CALL = "g (float[4] x) => (float[4] y) { y = f.F(x) } "


def _import(model: onnx.ModelProto, domain: str, version: int) -> None:
    model.opset_import.add(domain=domain, version=version)


CASES: Cases = {
    "no ir_version": changed(graph(), lambda m: m.ClearField("ir_version")),
    "ir_version 0": graph(ir=0),
    "ir_version -1": changed(graph(), lambda m: setattr(m, "ir_version", -1)),
    "ir_version 999": graph(ir=999),
    "no opset": changed(graph(), lambda m: m.ClearField("opset_import")),
    "opset 9999": graph(opset=9999),
    "opset 0": graph(opset=0),
    "opset -3": changed(graph(), lambda m: setattr(m.opset_import[0], "version", -3)),
    "opset 2^40": graph(opset=2**40),
    "ai.onnx.ml 99": changed(graph(), lambda m: _import(m, "ai.onnx.ml", 99)),
    "a negative version of a domain of its own": changed(graph(), lambda m: _import(m, "mine", -1)),
    "one domain twice": changed(graph(), lambda m: _import(m, "", 19)),
    "one domain by two names": changed(graph(), lambda m: _import(m, "ai.onnx", 19)),
    "a domain of its own twice": changed(
        graph(), lambda m: (_import(m, "mine", 1), _import(m, "mine", 2))
    ),
    "an operator younger than its opset": graph("y = Gelu(x)", opset=19),
    "an operator that its opset has dropped": graph('y = Upsample<mode = "nearest">(x, x)'),
    "an opset of a function that does not exist": text(
        CALL + FUNCTION.replace("20", "9999"), also=', "f" : 1'
    ),
    "a function that imports a domain twice": changed(
        text(CALL + FUNCTION, also=', "f" : 1'),
        lambda m: m.functions[0].opset_import.add(domain="", version=19),
    ),
    "a function of an opset that the model reads otherwise": text(
        CALL + FUNCTION.replace("20", "11").replace("Relu(a)", "Softmax(a)"), also=', "f" : 1'
    ),
    "a function of an operator that the model does not have": text(
        CALL + FUNCTION.replace("Relu(a)", "Gelu(a)"), opset=18, also=', "f" : 1'
    ),
}
