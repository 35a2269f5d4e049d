"""Normalize the operator set imports of a model."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope


def name_imports(model: ir.Model) -> None:
    """Rename the domain ``ai.onnx`` to "", and add the imports that ONNX Runtime implies.

    A model may use a domain of ONNX Runtime without importing it; the runtime then takes the newest
    version, and its own domains have only one. A missing import of ONNX's own operators stays: its
    meaning would change with each runtime release, so the checks refuse it.
    """
    _import(model.opset_imports, model.graph, model)
    for function in model.functions.values():
        _import(function.opset_imports, function.graph, model)


def _import(imports: dict[str, int], root: ir.Graph, model: ir.Model) -> None:
    """Add to ``imports`` the domains that nodes below ``root`` use."""
    version = imports.pop("ai.onnx", None)
    if version is not None:
        imports.setdefault("", version)
    used = {node.domain for node in scope.nodes_below(root)}
    for domain in sorted(used - imports.keys() - {key[0] for key in model.functions}):
        newest = _newest_version(domain)
        if newest is not None:
            imports[domain] = newest


def _newest_version(domain: str) -> int | None:
    """Return the newest version of a domain that ONNX Runtime implies; None for other domains."""
    if domain in ("com.microsoft", "com.microsoft.nchwc"):
        return 1
    if domain == "ai.onnx.ml":
        from onnx import defs

        return int(defs.onnx_ml_opset_version())
    return None
