"""The opsets that a model imports, named once and whole."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope


def name_imports(model: ir.Model) -> None:
    """Spell the domain of ONNX one way, and add imports that ONNX Runtime adds, too.

    ``ai.onnx`` and the empty name are one domain; only the latter is used from here on. Where a
    model has operators of a domain that ONNX Runtime knows, but imports none of it, the runtime
    takes its newest version, which for its own domains is the only one. Operators of ONNX without
    an import would be other ones in each release of a runtime, and are left to be refused.
    """
    _import(model.opset_imports, model.graph, model)
    for function in model.functions.values():
        _import(function.opset_imports, function.graph, model)


def _import(imports: dict[str, int], root: ir.Graph, model: ir.Model) -> None:
    version = imports.pop("ai.onnx", None)
    if version is not None:
        imports.setdefault("", version)
    used = {node.domain for node in scope.nodes_below(root)}
    for domain in sorted(used - imports.keys() - {key[0] for key in model.functions}):
        newest = _newest(domain)
        if newest is not None:
            imports[domain] = newest


def _newest(domain: str) -> int | None:
    if domain in ("com.microsoft", "com.microsoft.nchwc"):
        return 1
    if domain == "ai.onnx.ml":
        from onnx import defs

        return int(defs.onnx_ml_opset_version())
    return None
