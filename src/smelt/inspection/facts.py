"""The facts about a model that ``smelt inspect`` prints, as a Python API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import onnx_ir as ir

from smelt.errors import InvalidModel, SmeltError
from smelt.frontends.onnx.inline import inline_functions
from smelt.frontends.onnx.load import load
from smelt.frontends.onnx.read import Source
from smelt.inspection.depth import longest_chains
from smelt.inspection.polynomial import Polynomial, total
from smelt.inspection.quantized import QuantizedNode, quantized_nodes, quantized_weights
from smelt.inspection.symbols import Symbol, set_inferred_sizes, symbols_in
from smelt.inspection.weights import Weight, weights_of
from smelt.inspection.work import Work, work_of
from smelt.ir import scope
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.dims import unnamed_dims
from smelt.ir.text import operator
from smelt.passes.interface.materialize_symbolic_dims import bind_dims
from smelt.runtime.interface import Interface, interface_of


@dataclass(frozen=True)
class Function:
    """A function of the model: its number of nodes, and the number of calls."""

    name: str
    nodes: int
    calls: int


@dataclass(frozen=True)
class OperatorWork:
    """The number and work of all nodes of one operator; ``unknown`` nodes are not counted in it."""

    nodes: int
    macs: Polynomial
    flops: Polynomial
    bytes: Polynomial
    unknown: int


class Facts:
    """The facts of one model, each computed on first access.

    ``model`` is the model itself. ``flat`` is a copy without functions, with ``dims`` bound and
    shapes inferred; work and chains are computed on it. ``problem`` is the reason if only declared
    shapes are known, else empty.
    """

    def __init__(self, model: ir.Model, dims: Mapping[str, int] | None, own: bool) -> None:
        """Bind ``dims`` and infer the shapes of ``flat``.

        ``own``: the caller needs ``model`` no more, so it is changed in place of a copy.
        """
        self.model = model
        self.flat = model if own and not model.functions else model.clone()
        self.problem = ""
        _name_dims(self.flat)
        try:
            if self.flat.functions:
                inline_functions(self.flat)
        except SmeltError as error:
            self.problem = error.what
        if dims:
            bind_dims(self.flat, dims)
        self.interface: Interface = interface_of(self.flat)
        self.symbols: list[Symbol] = symbols_in(self.flat)
        try:
            ShapeInference(self.flat).infer_model()
        except InvalidModel as error:
            self.problem = self.problem or f"{error.what}, {', '.join(error.at)}"
        else:
            set_inferred_sizes(self.symbols, self.interface, self.flat.graph)

    def __repr__(self) -> str:
        nodes = sum(self.operators.values())
        return f"<Facts of {self.model.graph.name!r}: {nodes} nodes, {len(self.weights)} weights>"

    @cached_property
    def operators(self) -> Mapping[str, int]:
        """The number of nodes of each operator, descending; function bodies are counted once."""
        counts = Counter(operator(node) for node in scope.nodes(self.model))
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @cached_property
    def domains(self) -> Mapping[str, int]:
        """The number of nodes of each domain; ONNX's is ``ai.onnx``."""
        counts = Counter(node.domain or "ai.onnx" for node in scope.nodes(self.model))
        return dict(counts.most_common())

    @cached_property
    def functions(self) -> list[Function]:
        """The functions in the model, sorted by name."""
        called = Counter(node.op_identifier() for node in scope.nodes(self.model))
        return sorted(
            (
                Function(f"{f.domain}.{f.name}", len(f.graph), called[key])
                for key, f in self.model.functions.items()
            ),
            key=lambda function: function.name,
        )

    @cached_property
    def weights(self) -> list[Weight]:
        """All constants, the largest first."""
        return weights_of(self.model)

    @cached_property
    def chains(self) -> list[list[ir.Node]]:
        """The longest chains of dependent nodes, longest first."""
        return longest_chains(self.flat.graph)

    @cached_property
    def work(self) -> list[Work]:
        """The work of each node."""
        return work_of(self.flat)

    @cached_property
    def work_by_operator(self) -> Mapping[str, OperatorWork]:
        """The work of each operator, most FLOPs first."""
        groups: dict[str, list[Work]] = {}
        for item in self.work:
            groups.setdefault(operator(item.node), []).append(item)
        summed = {name: _summed(items) for name, items in groups.items()}
        return dict(sorted(summed.items(), key=lambda item: _order(item[1]), reverse=True))

    @cached_property
    def total(self) -> OperatorWork:
        """The work of the whole model."""
        return _summed(self.work)

    @cached_property
    def quantized(self) -> list[QuantizedNode]:
        """The nodes that compute with quantized values."""
        return quantized_nodes(self.model)

    @cached_property
    def quantized_weights(self) -> list[tuple[ir.Value, int]]:
        """The quantized constants with their bits."""
        return quantized_weights(self.model)


def inspect(model: Source, dims: Mapping[str, int] | None = None, *, own: bool = False) -> Facts:
    """Return the facts of ``model``, with symbolic ``dims`` bound to sizes.

    With ``own``, the model may be changed (inferred shapes are written into it), which saves a
    copy. Raises UsageError E633 for an unknown dim or impossible size, InvalidModel E301 if
    ``model`` is not a model.
    """
    return Facts(model if isinstance(model, ir.Model) else load(model, as_is=True), dims, own)


def _name_dims(model: ir.Model) -> None:
    """Give unnamed dims of inputs their generated names, for use in formulas."""
    named: dict[ir.Value, list[int | ir.SymbolicDim]] = {}
    for (value, axis), name in unnamed_dims(model.graph.inputs).items():
        if value.shape is not None:
            named.setdefault(value, list(value.shape.dims))[axis] = ir.SymbolicDim(name)
    for value, dims in named.items():
        value.shape = ir.Shape(dims)


def _summed(items: list[Work]) -> OperatorWork:
    """Return the work of several nodes together."""
    unknown = sum(item.flops is None for item in items)
    macs = total(item.macs for item in items if item.macs is not None)
    flops = total(item.flops for item in items if item.flops is not None)
    bytes_ = total(item.bytes for item in items if item.bytes is not None)
    return OperatorWork(len(items), macs, flops, bytes_, unknown)


def _order(work: OperatorWork) -> tuple[int, int]:
    """Return FLOPs and bytes with each symbol as 1, for sorting."""
    return sum(work.flops.terms.values()), sum(work.bytes.terms.values())
