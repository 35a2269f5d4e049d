"""Models as text: parses ONNX text, prints canonical text.

``parse`` reads the ONNX text format. ``canonical`` prints graphs that differ only in inner names,
node order or constant spelling alike. Tests, dumps and bug reports use them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.ir import constants, scope
from smelt.ir.opaque_types import opaque_type_of
from smelt.ir.partition import is_constant_node

LITERAL = 16
"""Constants of up to this many elements are printed in full."""


def parse(text: str, opset: int = 23, **domains: int) -> ir.Model:
    """Return the model of ONNX text; a bare graph gets a header with ``opset`` and ``domains``.

    Imports of the domains that the text uses are added (``smelt``, ``smelt.c``...), version 1.
    """
    if not text.lstrip().startswith("<"):
        imports = {"": opset, **dict.fromkeys(_domains_in(text), 1), **domains}
        listed = ", ".join(f'"{name}" : {version}' for name, version in imports.items())
        text = f"<ir_version: 10, opset_import: [{listed}]>\n{text.strip()}"
    try:
        return ir.from_onnx_text(text)
    except Exception as error:
        raise InvalidModel(
            "E310",
            "the text is not ONNX text",
            why=str(error).strip(),
            fix="see the grammar in onnx/docs/Syntax.md",
        ) from error


def _domains_in(text: str) -> list[str]:
    """Return the domains of the operators that ``text`` uses, sorted."""
    prefixes = re.findall(r"=\s*([a-z][\w.]*)\.[A-Z]\w*\s*[<(]", text)
    return sorted(dict.fromkeys(prefixes))


def canonical(model: ir.Model) -> str:
    """Return the text of the main graph; equal texts mean the same computation and interface."""
    return "\n".join(_Printer().graph(model.graph, "")) + "\n"


class _Printer:
    """Prints graphs; inner results are called %0, %1... in the order in which the outputs need
    them."""

    def __init__(self) -> None:
        self.names: dict[ir.Value, str] = {}
        self.count = 0

    def graph(self, graph: ir.Graph, indent: str) -> list[str]:
        """Return the lines of ``graph``."""
        for value in graph.inputs:
            self.names[value] = value.name or "?"
        body = [
            line for node in self.nodes_in_order(graph) for line in self.node(node, indent + "  ")
        ]
        inputs = ", ".join(f"{type_of(v)} {self.names[v]}" for v in graph.inputs)
        outputs = ", ".join(f"{type_of(v)} {v.name}={self.operand(v)}" for v in graph.outputs)
        return [f"{indent}({inputs}) => ({outputs}) {{", *body, f"{indent}}}"]

    def nodes_in_order(self, graph: ir.Graph) -> list[ir.Node]:
        """Return the nodes in the order of a depth-first walk from the outputs, then unreached
        ones."""
        done: dict[ir.Node, None] = {}
        roots = [v.producer() for v in graph.outputs]
        for root in [*roots, *graph]:
            stack: list[tuple[ir.Node | None, bool]] = [(root, False)]
            while stack:
                node, inputs_are_done = stack.pop()
                if (
                    node is None
                    or node in done
                    or node.graph is not graph
                    or is_constant_node(node)
                ):
                    continue
                if inputs_are_done:
                    done[node] = None
                    continue
                stack.append((node, True))
                reads = [*node.inputs, *scope.captures(node)]
                stack.extend((v.producer(), False) for v in reversed(reads) if v is not None)
        return list(done)

    def node(self, node: ir.Node, indent: str) -> list[str]:
        """Return the lines of ``node``, with its subgraphs indented."""
        operands = ", ".join("" if v is None else self.operand(v) for v in node.inputs)
        for value in node.outputs:
            self.names[value] = f"%{self.count}"
            self.count += 1
        results = ", ".join(self.names[v] for v in node.outputs)
        attribute_text, nested = attributes(node.attributes), list(scope.subgraphs(node))
        lines = [f"{indent}{results} = {operator(node)}{attribute_text}({operands})"]
        for graph in nested:
            lines += self.graph(graph, indent + "  ")
        return lines

    def operand(self, value: ir.Value) -> str:
        """Return the name of ``value``, or its literal if it is constant."""
        tensor = constants.tensor_of(value)
        if tensor is not None:
            return literal(tensor)
        return self.names.get(value) or value.name or "?"


def literal(tensor: ir.TensorProtocol) -> str:
    """Return a constant as ``float[2]{1.0,2.0}``; a long one with a checksum of its bytes."""
    kind = tensor_type(tensor)
    array = tensor.numpy()
    if array.size <= LITERAL:
        flat = array.reshape(-1)
        items = ",".join(_number(item) for item in flat)
        return f"{kind}{{{items}}}"
    return f"{kind}#{checksum(tensor)}"


def operator(node: ir.Node) -> str:
    """Return ``Relu``, or ``domain.Name`` for an operator beyond ONNX."""
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def size_in_bytes(tensor: ir.TensorProtocol) -> int:
    """Return the bytes of the elements; strings count by the length of their text."""
    if tensor.dtype == ir.DataType.STRING:
        return sum(len(item) for item in tensor.numpy().reshape(-1))
    return tensor.nbytes


def tensor_type(tensor: ir.TensorProtocol) -> str:
    """Return the type of ``tensor`` as text: ``float[2,3]``."""
    return f"{tensor.dtype.name.lower()}[{','.join(str(dim) for dim in tensor.shape)}]"


def checksum(tensor: ir.TensorProtocol) -> str:
    """Return twelve hexadecimal digits of a hash of the elements."""
    import hashlib

    array = np.ascontiguousarray(tensor.numpy())
    # Strings are objects, whose bytes are addresses; other types may refuse a memoryview.
    data = repr(array.tolist()).encode() if array.dtype.hasobject else array.view(np.uint8).data
    return hashlib.sha256(data).hexdigest()[:12]


def _number(item: np.generic) -> str:
    """Return a number as text; floats of up to 32 bits in the shortest form for float32."""
    if item.dtype.kind in "Vf":
        return str(np.float32(item) if item.dtype.itemsize <= 4 else np.float64(item))
    return str(item.item())


def type_of(value: ir.Value, dim: Callable[[int | ir.SymbolicDim], str] = str) -> str:
    """Return ``float[B,4]`` or ``seq(float[?])``; ``dim`` prints a dim, and ``?`` means unknown."""
    opaque = opaque_type_of(value)
    if opaque is not None:
        return opaque.text
    dtype = value.dtype.name.lower() if value.dtype is not None else "?"
    dims = "?" if value.shape is None else ",".join(map(dim, value.shape.dims))
    text, type_ = f"{dtype}[{dims}]", value.type
    while isinstance(type_, ir.SequenceType | ir.OptionalType):
        text = f"{'seq' if isinstance(type_, ir.SequenceType) else 'optional'}({text})"
        type_ = type_.elem_type
    return text


def attributes(attributes_by_name: Mapping[str, ir.Attr]) -> str:
    """Return ``<axis=1, perm=[1,0]>``, sorted by name and without graphs; empty if there are
    none."""
    texts = {name: attribute(attributes_by_name[name]) for name in sorted(attributes_by_name)}
    parts = [f"{name}={text}" for name, text in texts.items() if text is not None]
    return f"<{', '.join(parts)}>" if parts else ""


def attribute(attr: ir.Attr) -> str | None:
    """Return the value of an attribute as text; None for graphs."""
    if attr.is_ref():
        return f"@{attr.ref_attr_name}"
    if attr.type == ir.AttributeType.TENSOR:
        return literal(attr.as_tensor())
    if attr.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
        return None
    return _plain_text(attr.value)


def _plain_text(value: object) -> str:
    """Return a plain attribute value as text."""
    if isinstance(value, tuple | list):
        return f"[{','.join(_plain_text(item) for item in value)}]"
    if isinstance(value, float):
        return str(np.float32(value))
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
