"""Export a graph of ATen operators as an ONNX model, by PyTorch's exporter."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from torch.export import graph_signature as signature
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

from smelt.errors import SmeltError, Unsupported
from smelt.networks.tensors import tensor_of


@dataclass(frozen=True)
class Result:
    """A result of a graph: a constant, the argument at a position, or an output of the model.

    Exactly one of ``argument`` and ``output`` is not None, unless the result is ``constant``.
    """

    output: int | None = None
    is_tensor: bool = True
    argument: int | None = None
    constant: Any = None

    def of(self, arguments: Sequence[Any], outputs: Sequence[np.ndarray]) -> Any:
        """Return the result of a run that had these arguments and outputs."""
        if self.output is not None:
            value = outputs[self.output]
            return tensor_of(value) if self.is_tensor else value.item()
        return self.constant if self.argument is None else arguments[self.argument]


@dataclass(frozen=True)
class Exported:
    """The ONNX ``model`` of a graph, the positions of the arguments that it takes as inputs, and
    the results of the graph; the model is None if all results are arguments or constants.
    """

    model: ir.Model | None
    positions: Sequence[int]
    results: Sequence[Result]


def export(module: GraphModule) -> Exported:
    """Return the ONNX model of ``module``.

    ``module`` takes and returns tensors and sizes (SymInt), and changes no argument. A size that is
    a dim of a tensor argument is read off the tensor, so it is not an input of the model. Raises
    Unsupported E116 if PyTorch's exporter refuses an operator.
    """
    graph = Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    results = _take_results(graph)
    constants = _lift_constants(graph, module)
    positions = _drop_sizes(graph)
    if all(result.output is None for result in results):
        return Exported(None, positions, results)
    program = _exported_program(module, graph, constants)
    try:
        with torch.no_grad(), _quiet():
            exported = torch.onnx.export(program, dynamo=True, verbose=False, optimize=False)
    except Exception as error:  # the exporter lets errors of any type out
        raise _refusal(error) from error
    assert exported is not None
    model: ir.Model = exported.model
    return Exported(model, positions, results)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress what the exporter tells about PyTorch itself, such as a missing torchvision."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        logger.setLevel(level)


def _lift_constants(graph: Graph, module: GraphModule) -> dict[str, torch.Tensor]:
    """Replace constant tensors of ``graph`` by placeholders; return the tensors by their names."""
    constants: dict[str, torch.Tensor] = {}
    first = next(iter(graph.nodes))
    for node in list(graph.find_nodes(op="get_attr")):
        value = getattr(module, str(node.target), None)
        if isinstance(value, torch.Tensor):
            with graph.inserting_before(first):
                placeholder = graph.placeholder(f"constant_{len(constants)}")
            placeholder.meta = dict(node.meta)
            placeholder.meta.setdefault("val", value)
            constants[placeholder.name] = value
            node.replace_all_uses_with(placeholder)
            graph.erase_node(node)
    return constants


def _drop_sizes(graph: Graph) -> list[int]:
    """Replace size arguments by dims of tensor arguments; return the positions of the arguments
    that are left.

    A placeholder of the size ``s0`` beside a tensor of the shape ``[s0, 8]`` becomes
    ``aten.sym_size.int(tensor, 0)``.
    """
    places = [n for n in graph.find_nodes(op="placeholder") if not n.name.startswith("constant_")]
    tensors = [n for n in places if isinstance(n.meta.get("val"), torch.Tensor)]
    dims: dict[str, tuple[Node, int]] = {}
    for node in tensors:
        for axis, dim in enumerate(node.meta["val"].shape):
            if isinstance(dim, torch.SymInt):
                dims.setdefault(str(dim), (node, axis))
    first = next(node for node in graph.nodes if node.op != "placeholder")
    taken = []
    for position, node in enumerate(places):
        size = node.meta.get("val")
        if not isinstance(size, torch.SymInt) or (node.users and str(size) not in dims):
            taken.append(position)
            continue
        if node.users:
            with graph.inserting_before(first):
                read = graph.call_function(torch.ops.aten.sym_size.int, dims[str(size)])
            read.meta = dict(node.meta)
            node.replace_all_uses_with(read)
        graph.erase_node(node)
    return taken


def _take_results(graph: Graph) -> list[Result]:
    """Return the results of ``graph``, and leave it only the outputs that the model must compute.

    The graph then returns each computed node once, sizes as tensors. A result that is an argument
    or a constant is no output of the model.
    """
    output = graph.output_node()
    (returned,) = output.args
    assert isinstance(returned, Sequence)
    places = {node: at for at, node in enumerate(graph.find_nodes(op="placeholder"))}
    computed: dict[Node, int] = {}
    results = []
    for value in returned:
        if not isinstance(value, Node):
            results.append(Result(constant=value))
        elif value in places:
            results.append(Result(argument=places[value]))
        else:
            is_tensor = isinstance(value.meta.get("val"), torch.Tensor)
            results.append(Result(computed.setdefault(value, len(computed)), is_tensor))
    with graph.inserting_before(output):
        output.args = (tuple(_as_tensor(graph, node) for node in computed),)
    return results


def _as_tensor(graph: Graph, node: Node) -> Node:
    """Return a node of ``graph`` that makes a tensor of the number that ``node`` computes."""
    size = node.meta.get("val")
    if not isinstance(size, torch.SymInt):
        return node
    tensor = graph.call_function(
        torch.ops.aten.scalar_tensor.default, (node,), {"dtype": torch.int64}
    )
    values = (each.meta.get("val") for each in graph.find_nodes(op="placeholder"))
    with next(value.fake_mode for value in values if isinstance(value, FakeTensor)):
        tensor.meta["val"] = torch.empty((), dtype=torch.int64)
    return tensor


def _exported_program(
    module: GraphModule, graph: Graph, constants: dict[str, torch.Tensor]
) -> ExportedProgram:
    """Return the program of ``graph``, whose placeholders in ``constants`` have these values.

    ``module`` has the subgraphs, for example those of ``torch.cond``.
    """
    inputs = [
        signature.InputSpec(signature.InputKind.CONSTANT_TENSOR, _argument(node), node.name)
        if node.name in constants
        else signature.InputSpec(signature.InputKind.USER_INPUT, _argument(node), None)
        for node in graph.find_nodes(op="placeholder")
    ]
    (results,) = graph.output_node().args
    assert isinstance(results, Sequence)
    outputs = [
        signature.OutputSpec(signature.OutputKind.USER_OUTPUT, _argument(result), None)
        for result in results
    ]
    given = [each.arg for each in inputs if each.kind is signature.InputKind.USER_INPUT]
    returned = [each.arg for each in outputs]
    call = ModuleCallSignature(
        given,
        returned,
        pytree.tree_structure((tuple(given), {})),
        pytree.tree_structure(tuple(returned)),
    )
    root = torch.nn.Module()
    for name, subgraph in module.named_children():
        root.add_module(name, subgraph)
    return ExportedProgram(
        root,
        graph,
        signature.ExportGraphSignature(inputs, outputs),
        {},
        {},
        [ModuleCallEntry("", call)],
        constants=dict(constants),
    )


def _argument(value: Any) -> Any:
    """Return the description of an input or output of an exported program."""
    if not isinstance(value, Node):
        return signature.ConstantArgument("", value)
    kinds: dict[type, Any] = {
        torch.SymInt: signature.SymIntArgument,
        torch.SymFloat: signature.SymFloatArgument,
        torch.SymBool: signature.SymBoolArgument,
    }
    kind = kinds.get(type(value.meta.get("val")), signature.TensorArgument)
    return kind(value.name)


def _refusal(error: Exception) -> SmeltError:
    """Return error E116 with the innermost reason of the exporter."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return Unsupported(
        "E116",
        "PyTorch's exporter cannot write a part of the program as ONNX",
        why=lines[0] if lines else type(cause).__name__,
        fix="compute this part behind torch._dynamo.graph_break(), outside of the graph",
    )
