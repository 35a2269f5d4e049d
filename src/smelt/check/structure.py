"""Print a graph as lines of text: chains of operators with their output shapes.

``Conv:Bx28x28x32 -> Relu:Bx28x28x32`` is a Relu that reads a Conv; ``Block:Bx8 * 12`` are twelve
such nodes, each reading the previous one. Shapes of several outputs are separated by commas, a
scalar is ``()``, and a size whose text has an x is in parentheses: ``Bx(max_length)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.text import operator

ARROW = " -> "
TIMES = " * "


def steps(graph: ir.Graph) -> list[ir.Node]:
    """Return the nodes of ``graph`` in order, without constants."""
    return [node for node in graph if node.domain or node.op_type != "Constant"]


def with_shapes(model: ir.Model) -> ir.Model:
    """Return ``model``, or a copy with inferred shapes if a result has no shape."""
    graphs = (model.graph, *(function.graph for function in model.functions.values()))
    results = [value for graph in graphs for node in graph for value in node.outputs]
    if all(value.shape is not None for value in results if value.name != ""):
        return model
    copy = model.clone()
    ShapeInference(copy).infer_model()
    return copy


def shape_text(node: ir.Node) -> str:
    """Return the shapes of the outputs of ``node``; empty if the first one is unknown."""
    shapes = [None if value.shape is None else _shape(value.shape) for value in node.outputs]
    return "" if not shapes or shapes[0] is None else ",".join(text or "?" for text in shapes)


def _shape(shape: ir.Shape) -> str:
    """Return ``shape`` as text, ``Bx28x28``."""
    return "x".join(_dim(dim) for dim in shape.dims) or "()"


def _dim(dim: int | ir.SymbolicDim) -> str:
    """Return a dim as text; in parentheses if the text contains a separator."""
    if not isinstance(dim, int) and dim.value is None:
        return "?"
    text = str(dim).replace(" ", "")
    return f"({text})" if any(separator in text for separator in "x,>*") else text


def lines(graph: ir.Graph) -> list[str]:
    """Return ``graph`` as chains, in order; each node except constants occurs once."""
    return [ARROW.join(_counted(chain)) for chain in _chains(steps(graph))]


def _chains(nodes: Sequence[ir.Node]) -> Iterator[list[ir.Node]]:
    """Yield ``nodes`` as chains: in each, every node reads the one before it."""
    chain: list[ir.Node] = []
    for node in nodes:
        if chain and not reads(node, chain[-1]):
            yield chain
            chain = []
        chain.append(node)
    if chain:
        yield chain


def reads(node: ir.Node, before: ir.Node) -> bool:
    """True if ``node``, or a graph inside of it, reads a result of ``before``."""
    values = (*node.inputs, *scope.captures(node))
    return any(value is not None and value.producer() is before for value in values)


def _counted(chain: Sequence[ir.Node]) -> Iterator[str]:
    """Yield the steps of ``chain``; equal consecutive steps become one with a count."""
    texts = [":".join(filter(None, (operator(node), shape_text(node)))) for node in chain]
    start = 0
    for i, text in enumerate(texts):
        if i + 1 == len(texts) or texts[i + 1] != text:
            count = i + 1 - start
            yield f"{text}{TIMES}{count}" if count > 1 else text
            start = i + 1


def snippet(model: ir.Model) -> str:
    """Return Python code that expects the structure of ``model``, main graph and functions."""
    model = with_shapes(model)
    parts = [_call(lines(model.graph), "")]
    parts += [_call(lines(f.graph), f.name) for f in model.functions.values()]
    return "\n".join(["from smelt.check.expect import expect_graph", "", *parts])


def _call(chains: Sequence[str], function: str) -> str:
    """Return the call of ``expect_graph`` for the chains of one graph."""
    named = [f"    function={_quoted(function)},"] if function else []
    listed = [f"        {_quoted(line)}," for line in chains]
    body = ["    [", *listed, "    ],"] if listed else ["    [],"]
    return "\n".join(["expect_graph(", "    model,", *body, *named, "    exact=True,", ")"])


def _quoted(text: str) -> str:
    """Return ``text`` as a Python string literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
