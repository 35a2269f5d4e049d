"""Inline the functions of a model, after checks that the result is finite and not too large."""

from __future__ import annotations

import onnx_ir as ir

from smelt.errors import InvalidModel, ResourceLimit
from smelt.frontends.onnx.checks.functions import check_calls
from smelt.ir import scope
from smelt.ir.opsets.raise_opset import raise_opset

MAX_NODES = 2_000_000
"""The largest number of nodes after inlining: ten calls on each of eleven levels would be 10^11."""


def inline_functions(model: ir.Model) -> None:
    """Replace every call of a local function by its body.

    Raises InvalidModel E312 and E316 for calls that nest too deep or recursively, ResourceLimit
    E502 beyond ``MAX_NODES``, and Unsupported E230 if a function's opset cannot be converted to the
    model's.
    """
    from onnx_ir.passes.common import InlinePass

    check_calls(model)
    size = _Expansion(model).size_of(model.graph)
    if size > MAX_NODES:
        raise ResourceLimit(
            "E502",
            f"the model would have {size:,} nodes after inlining",
            why=f"the limit is {MAX_NODES:,}",
            fix="load it with inline=False",
        )
    versions = [f.opset_imports.get("", 0) for f in model.functions.values()]
    raise_opset(model, max([model.opset_imports.get("", 0), *versions]))
    for function in model.functions.values():
        for domain, version in function.opset_imports.items():
            model.opset_imports.setdefault(domain, version)
    try:
        InlinePass()(model)
    except ValueError as error:
        raise InvalidModel(
            "E302",
            "the functions cannot be inlined",
            why=str(error),
            fix="load the model with inline=False, or export it without functions",
        ) from error


class _Expansion:
    """Counts the nodes of a graph after inlining; requires that ``check_calls`` passed."""

    def __init__(self, model: ir.Model) -> None:
        """Begin without results; ``sizes`` caches the size of each function after inlining."""
        self.functions = model.functions
        self.sizes: dict[ir.OperatorIdentifier, int] = {}

    def size_of(self, root: ir.Graph) -> int:
        """Return the number of nodes below ``root`` after inlining."""
        return sum(self.size_of_call(node) for graph in scope.graphs_below(root) for node in graph)

    def size_of_call(self, node: ir.Node) -> int:
        """Return the number of nodes that ``node`` becomes."""
        key = node.op_identifier()
        function = self.functions.get(key)
        if function is None:
            return 1
        if key not in self.sizes:
            self.sizes[key] = self.size_of(function.graph)
        return self.sizes[key]
