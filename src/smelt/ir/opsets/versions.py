"""IR versions of the ONNX format: the lowest that a model needs, by its operator sets and types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.ir import scope

TRACED = range(18, 26)
"""The opsets for which JAX functions are traced; a lower one is reached by lowering the model."""

TYPES: Mapping[str, int] = {
    **dict.fromkeys(("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"), 9),
    **dict.fromkeys(("INT4", "UINT4"), 10),
    "FLOAT4E2M1": 11,
    "FLOAT8E8M0": 12,
    **dict.fromkeys(("INT2", "UINT2"), 13),
}
"""The IR version that introduced an element type."""


def traced_opset(opset: int | None) -> dict[str, int]:
    """Return the keyword ``opset`` for tracing a JAX function whose model is wanted at ``opset``.

    Below the lowest traced opset, the caller lowers the model afterwards. None: no keyword.
    """
    return {} if opset is None else {"opset": max(opset, TRACED[0])}


def ir_version_of(imports: Mapping[str, int]) -> int:
    """Return the IR version that ONNX released with the latest operator set of ``imports``.

    3, the first with operator sets, if ONNX knows none of them.
    """
    return max((_released(name or "ai.onnx", n) for name, n in imports.items()), default=3)


def lowest_ir_version(model: ir.Model) -> int:
    """Return the IR version that introduced the features ``model`` uses.

    The features are weights that are not inputs, element types, and functions. A model that states
    a lower version is accepted, and written with this version.
    """
    weights = [v for graph in scope.graphs(model) for v in graph.initializers.values()]
    needed = {4 for value in weights if not value.is_graph_input()}
    types = {v.dtype.name for v in scope.values(model) if v.dtype is not None}
    needed |= {TYPES[name] for name in types & TYPES.keys()}
    return max({8 if model.functions else 3} | needed)


def set_ir_version(model: ir.Model, version: int | None) -> None:
    """Set the IR version of ``model`` to ``version``, unless it is None.

    Raises Unsupported E232 if the model needs a later one.
    """
    if version is None:
        return
    needed = max(ir_version_of(model.opset_imports), lowest_ir_version(model))
    if version < needed:
        opset = model.opset_imports.get("", 0)
        raise Unsupported(
            "E232",
            f"the model cannot have IR version {version}",
            why=f"opset {opset} and its element types need IR version {needed}",
            fix=f"ask for IR version {needed}, or for an earlier opset as well: "
            f"--opset {_last_opset(version)}",
        )
    model.ir_version = version


@cache
def _released(domain: str, version: int) -> int:
    """Return the IR version that ONNX released with this operator set."""
    from onnx import helper

    return int(helper.OP_SET_ID_VERSION_MAP.get((domain, version), 3))


def _last_opset(version: int) -> int:
    """Return the last ONNX opset whose IR version is at most ``version``."""
    from onnx import helper

    table = helper.OP_SET_ID_VERSION_MAP.items()
    return max(
        n for (domain, n), ir_version in table if domain == "ai.onnx" and ir_version <= version
    )
