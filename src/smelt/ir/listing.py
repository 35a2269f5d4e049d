"""A model as lines of ONNX text, in node order, with the type of every value.

::

    g (
      float[B,4] x,
    ) => (
      float[B,4] y,
    ) <
      float[4,768] w = {...},  # 12,288 bytes
    > {
      h = MatMul(x, w)  # float[B,768]
    }

One line per value, so that a diff of two listings shows nodes and types. Names are those of the
model with unprintable characters escaped; elements of large weights are omitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import onnx_ir as ir

from smelt.ir import scope, text
from smelt.ir.defaults import default_of
from smelt.ir.opaque_types import opaque_type_of
from smelt.ir.symbolic_dims.invented_dims import is_invented

STEP = "  "

SHOWN = 8
"""Maximum number of elements of a weight that are printed."""


@dataclass
class Listing:
    """The ``lines``, and the tensors whose elements are omitted, by line number."""

    lines: list[str] = field(default_factory=list)
    weights: dict[int, ir.TensorProtocol] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def listing(model: ir.Model) -> Listing:
    """Return the lines of ``model``: versions, the main graph with all subgraphs, then the
    functions."""
    text_lines = Listing()
    imports = ", ".join(f'"{domain}" : {v}' for domain, v in sorted(model.opset_imports.items()))
    _add(text_lines, "", f"<ir_version: {model.ir_version}, opset_import: [{imports}]>")
    _graph(text_lines, "", model.graph.name or "g", model.graph)
    for function in model.functions.values():
        _graph(text_lines, "", f"{function.domain}.{function.name}", function.graph)
    return text_lines


def node_text(node: ir.Node) -> str:
    """Return ``y = Op<axis=1>(a, b)``; each subgraph is shown by its number of nodes."""
    counts = [f"{len(graph)} nodes" for graph in scope.subgraphs(node)]
    return printable(_call(node) + (f" <{', '.join(counts)}>" if counts else ""))


def printable(line: str) -> str:
    """Return ``line`` with control characters and line breaks, which a name may hold, escaped."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def with_checksums(a: Listing, b: Listing) -> tuple[list[str], list[str]]:
    """Return the lines of both listings; equal lines of different weights get checksums.

    Weights that are the same tensor object in both are not read.
    """
    a_lines, b_lines = list(a.lines), list(b.lines)
    lines_of_b: dict[str, list[int]] = {}
    for index in b.weights:
        lines_of_b.setdefault(b.lines[index], []).append(index)
    for line_of_a, tensor in a.weights.items():
        line = a.lines[line_of_a]
        others = [(line_of_b, b.weights[line_of_b]) for line_of_b in lines_of_b.get(line, ())]
        if all(tensor is other for _, other in others):
            continue
        own_sum, other_sums = text.checksum(tensor), [text.checksum(other) for _, other in others]
        if any(other_sum != own_sum for other_sum in other_sums):
            a_lines[line_of_a] = f"{line}, #{own_sum}"
            for (line_of_b, _), other_sum in zip(others, other_sums, strict=True):
                b_lines[line_of_b] = f"{line}, #{other_sum}"
    return a_lines, b_lines


def _add(text_lines: Listing, indent: str, line: str) -> None:
    """Append ``line`` to the listing, indented."""
    text_lines.lines.append(indent + printable(line))


def _graph(text_lines: Listing, indent: str, name: str, graph: ir.Graph, end: str = "}") -> None:
    """Append the lines of ``graph``: inputs, outputs, initializers, nodes."""
    inner = indent + STEP
    _add(text_lines, indent, f"{name} (")
    for value in graph.inputs:
        default = default_of(value)
        default_text = f" = {text.literal(default)}" if default is not None else ""
        _add(text_lines, inner, f"{_type(value)} {value.name}{default_text},")
    _add(text_lines, indent, ") => (")
    for value in graph.outputs:
        _add(text_lines, inner, f"{_type(value)} {value.name},")
    _add(text_lines, indent, ") <" if graph.initializers else ") {")
    for value in graph.initializers.values():
        _weight(text_lines, inner, value)
    if graph.initializers:
        _add(text_lines, indent, "> {")
    for node in graph:
        _node(text_lines, inner, node)
    _add(text_lines, indent, end)


def _weight(text_lines: Listing, indent: str, value: ir.Value) -> None:
    """Append the line of an initializer; a large one keeps its tensor in ``text_lines.weights``."""
    tensor = value.const_value
    if tensor is None:
        _add(text_lines, indent, f"{_type(value)} {value.name},")
    elif tensor.size <= SHOWN:
        kind, literal = text.tensor_type(tensor), text.literal(tensor)
        _add(text_lines, indent, f"{kind} {value.name} = {literal.removeprefix(kind)},")
    else:
        text_lines.weights[len(text_lines.lines)] = tensor
        size = f"{text.size_in_bytes(tensor):,} bytes"
        _add(text_lines, indent, f"{text.tensor_type(tensor)} {value.name} = {{...}},  # {size}")


def _node(text_lines: Listing, indent: str, node: ir.Node) -> None:
    """Append the lines of ``node``, with its subgraphs in angle brackets."""
    types = ", ".join(_type(value) for value in node.outputs)
    note = f"  # {types}" if types.strip("?, ") else ""
    graphs = [] if scope.is_flat(node) else list(_named_graphs(node))
    if not graphs:
        _add(text_lines, indent, f"{_call(node)}{note}")
        return
    _add(text_lines, indent, f"{_call(node)} <{note}")
    for name, graph in graphs:
        _graph(text_lines, indent + STEP, f"{name} = {graph.name or 'g'}", graph, "},")
    _add(text_lines, indent, ">")


def _named_graphs(node: ir.Node) -> Iterator[tuple[str, ir.Graph]]:
    """Yield each subgraph of ``node`` with the name of its attribute."""
    for name, attr in node.attributes.items():
        if attr.is_ref():
            continue
        if attr.type == ir.AttributeType.GRAPH:
            yield name, attr.as_graph()
        elif attr.type == ir.AttributeType.GRAPHS:
            yield from ((name, graph) for graph in attr.as_graphs())


def _call(node: ir.Node) -> str:
    """Return ``node`` as ``y = Op<axis=1>(a, b)``."""
    attributes = text.attributes(node.attributes) if node.attributes else ""
    return f"{_names(node.outputs)} = {text.operator(node)}{attributes}({_names(node.inputs)})"


def _type(value: ir.Value) -> str:
    """Return the type of ``value``; ``?`` if nothing is known."""
    known = value.shape is not None or value.type is not None or opaque_type_of(value) is not None
    return text.type_of(value, dim_text) if known else "?"


def dim_text(dim: int | ir.SymbolicDim) -> str:
    """Return the text of ``dim``, or ``?`` for an invented name, which another run numbers anew."""
    text_of_dim = str(dim)
    return "?" if is_invented(text_of_dim) or text_of_dim == "None" else text_of_dim


def _names(values: Iterable[ir.Value | None]) -> str:
    """Return the names of ``values`` as text, empty for an absent value."""
    return ", ".join("" if value is None else value.name or "" for value in values)
