"""Make a copy of a model return the extremes of its float values instead of its own results.

Each value is reduced where it is computed, so that a run needs no more memory than a plain one. The
reductions give three numbers: minimum, maximum, and a number that detects NaN. That is the sum,
which is NaN if an element is, or with ``finite`` the count of NaN. Each graph concatenates the
numbers of its values into three vectors; If, Loop and Scan return those of their bodies as further
outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.cloning import clone_model
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators import register_all

FLOATS = frozenset(
    {ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16}
)
"""The element types that are measured."""

NOTHING = (np.inf, -np.inf, 0.0)
"""The three numbers of a value without elements: neutral for minimum, maximum and sum."""


@dataclass
class Instrumented:
    """A copy of a model whose three outputs are vectors with one number for each of ``values``.

    ``values`` are values of the original model. The outputs are the minima, the maxima and the
    sums. With ``finite``, minima and maxima ignore NaN and infinities, and the third output counts
    NaN. ``unmeasured`` maps float values that are not measured to the reason.
    """

    model: ir.Model
    values: list[ir.Value] = field(default_factory=list)
    unmeasured: dict[ir.Value, str] = field(default_factory=dict)


def instrument(model: ir.Model, *, finite: bool = False) -> Instrumented:
    """Return a copy of ``model`` that measures its float values; its functions must be inlined."""
    copy = clone_model(model)
    originals = dict(zip(scope.values(copy), scope.values(model), strict=True))
    if any(value.type is None for value in originals):
        register_all()
        shapes = ShapeInference(copy)
        shapes.infer_model()
        shapes.restore_interface()
    writer = _Writer(copy, finite)
    values, vectors = writer.measure_graph(copy.graph)
    copy.graph.outputs[:] = vectors
    return Instrumented(
        copy,
        [originals[value] for value in values],
        {originals[value]: why for value, why in writer.unmeasured.items()},
    )


Vectors = list[ir.Value]
"""Three vectors: the minima, the maxima and the third numbers of several values."""


class _Writer:
    """Adds reductions to the graphs of ``model``; see ``Instrumented`` for ``finite``."""

    def __init__(self, model: ir.Model, finite: bool) -> None:
        """Change nothing yet; constants will be initializers of the main graph."""
        self.opset = model.opset_imports.get("", 1)
        self.finite = finite
        self.unmeasured: dict[ir.Value, str] = {}
        self.constants: dict[str, ir.Value] = {}
        self.main = model.graph

    def measure_graph(self, graph: ir.Graph) -> tuple[list[ir.Value], Vectors]:
        """Reduce each float value of ``graph`` and of the bodies in it.

        Return the values, and the three vectors with one number for each of them.
        """
        values: list[ir.Value] = []
        parts: list[Vectors] = []
        nodes = list(graph)
        first = nodes[0] if nodes else None
        for value in graph.inputs:
            if self._is_measured(value):
                place = _Place(graph, before=first)
                values.append(value)
                parts.append(self._extremes(place, value))
        for node in nodes:
            place = _Place(graph, after=node)
            for value in node.outputs:
                if self._is_measured(value):
                    values.append(value)
                    parts.append(self._extremes(place, value))
            if scope.carries_graphs(node):
                inner, vectors = self._measure_bodies(place, node)
                values += inner
                parts += [vectors] if inner else []
        end = _Place(graph)
        if not parts:
            return [], [self.constant(np.zeros(0, np.float32)) for _ in range(3)]
        return values, [end.op("Concat", *column, axis=0) for column in zip(*parts, strict=True)]

    def _is_measured(self, value: ir.Value) -> bool:
        """True for a tensor of floats; for other values that may hold floats, note the reason."""
        if isinstance(value.type, ir.SequenceType | ir.OptionalType):
            self.unmeasured[value] = "it is a sequence or an optional value"
        elif value.type is None and value.name:
            self.unmeasured[value] = "its type is unknown"
        elif value.dtype in FLOATS:
            return True
        elif value.dtype is not None and value.dtype.is_floating_point():
            self.unmeasured[value] = f"it is of {value.dtype.name.lower()}"
        return False

    def _extremes(self, place: _Place, value: ir.Value) -> Vectors:
        """Return the three numbers of ``value``, each as a float32 vector of one element."""
        flat = place.op("Reshape", value, self.constant(np.asarray([-1], np.int64)))
        if value.dtype in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
            flat = place.op("Cast", flat, to=int(ir.DataType.FLOAT))
        lows, highs, third = flat, flat, flat
        if self.finite:
            lows, highs, third = self._without_specials(place, flat, value.dtype)
        reduced = [
            place.op("ReduceMin", lows, keepdims=1),
            place.op("ReduceMax", highs, keepdims=1),
            place.op("ReduceSum", third, keepdims=1),
        ]
        if value.dtype != ir.DataType.DOUBLE:
            return reduced
        return [place.op("Cast", number, to=int(ir.DataType.FLOAT)) for number in reduced]

    def _without_specials(
        self, place: _Place, flat: ir.Value, dtype: ir.DataType | None
    ) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Return the operands of the three reductions that ignore NaN and infinities.

        They are ``flat`` with infinity in place of both (for ReduceMin), with -infinity (for
        ReduceMax), and a vector that is 1 for each NaN and 0 elsewhere (for ReduceSum).
        """
        kind = np.float64 if dtype == ir.DataType.DOUBLE else np.float32
        low, high, none = (self.constant(np.asarray(number, kind)) for number in NOTHING)
        one = self.constant(np.asarray(1, kind))
        magnitude = place.op("Abs", flat)
        finite = place.op("Less", magnitude, low)
        largest = self.constant(np.asarray(np.finfo(kind).max, kind))
        infinite = place.op("Greater", magnitude, largest)
        nan = place.op("Where", finite, none, place.op("Where", infinite, none, one))
        return (
            place.op("Where", finite, flat, low),
            place.op("Where", finite, flat, high),
            nan,
        )

    def _measure_bodies(self, place: _Place, node: ir.Node) -> tuple[list[ir.Value], Vectors]:
        """Measure the bodies of ``node``; return their values, and vectors in the graph of
        ``node``.

        Bodies of other operators than If, Loop and Scan are not measured.
        """
        if node.domain or node.op_type not in ("If", "Loop", "Scan"):
            for graph in scope.subgraphs(node):
                for body in scope.graphs_below(graph):
                    inner = [v for n in body for v in n.outputs if v.dtype in FLOATS]
                    why = f"it is inside {node.op_type}"
                    self.unmeasured.update(dict.fromkeys((*body.inputs, *inner), why))
            return [], []
        if node.op_type == "If":
            return self._measure_branches(node)
        return self._measure_rounds(place, node)

    def _measure_branches(self, node: ir.Node) -> tuple[list[ir.Value], Vectors]:
        """Measure the branches of an If; a branch that does not run gives neutral numbers.

        Each branch returns a number for every value of both branches, because the outputs of both
        must have one shape.
        """
        branches = list(scope.subgraphs(node))
        measured = [self.measure_graph(branch) for branch in branches]
        values = [value for inner, _ in measured for value in inner]
        if not values:
            return [], []
        for branch, (inner, vectors) in zip(branches, measured, strict=True):
            end = _Place(branch)
            columns: list[list[ir.Value]] = [[], [], []]
            for other, (others, _) in zip(branches, measured, strict=True):
                for column, own, number in zip(columns, vectors, NOTHING, strict=True):
                    size = len(inner if other is branch else others)
                    fill = self.constant(np.full(size, number, np.float32))
                    column.append(own if other is branch else fill)
            branch.outputs.extend(end.op("Concat", *column, axis=0) for column in columns)
        return values, _more_outputs(node, [len(values)])

    def _measure_rounds(self, place: _Place, node: ir.Node) -> tuple[list[ir.Value], Vectors]:
        """Measure the body of a Loop or Scan: the extremes over all iterations.

        The body returns its vectors as scan outputs, which the node stacks as rows. A row of
        neutral numbers is put before them, so that there is one even without iterations.
        """
        (body,) = scope.subgraphs(node)
        values, vectors = self.measure_graph(body)
        if not values:
            return [], []
        # Identity, because an output must be a result of the body, and a vector may be a constant.
        body.outputs.extend(_Place(body).op("Identity", vector) for vector in vectors)
        for name in ("scan_output_axes", "scan_output_directions"):
            if name in node.attributes:
                given = list(node.attributes[name].as_ints())
                node.attributes[name] = ir.AttrInt64s(name, [*given, 0, 0, 0])
        stacked = _more_outputs(node, [None, len(values)])
        reduced = []
        names = ("ReduceMin", "ReduceMax", "ReduceSum")
        for op_type, rows, number in zip(names, stacked, NOTHING, strict=True):
            neutral = self.constant(np.full((1, len(values)), number, np.float32))
            all_rows = place.op("Concat", neutral, rows, axis=0)
            reduced.append(self._reduce(place, op_type, all_rows))
        return values, reduced

    def _reduce(self, place: _Place, op_type: str, rows: ir.Value) -> ir.Value:
        """Return ``rows`` reduced over axis 0; axes are an input or attribute, by the opset."""
        if self.opset >= (13 if op_type == "ReduceSum" else 18):
            return place.op(op_type, rows, self.constant(np.asarray([0], np.int64)), keepdims=0)
        return place.op(op_type, rows, axes=[0], keepdims=0)

    def constant(self, array: np.ndarray) -> ir.Value:
        """Return an initializer of the main graph with ``array``, which all graphs can read."""
        key = f"{array.dtype}{array.shape}{array.tobytes().hex()}"
        if key not in self.constants:
            tensor = ir.Tensor(array)
            value = ir.Value(
                name=f"smelt_measure_{len(self.constants)}",
                type=ir.TensorType(tensor.dtype),
                shape=ir.Shape(array.shape),
                const_value=tensor,
            )
            self.main.register_initializer(value)
            self.constants[key] = value
        return self.constants[key]


class _Place:
    """The position of new nodes: after ``after``, before ``before``, or at the end of ``graph``."""

    def __init__(
        self, graph: ir.Graph, *, after: ir.Node | None = None, before: ir.Node | None = None
    ) -> None:
        """Hold the position; ``after`` moves on with each new node, so that these are in order."""
        self.graph, self.after, self.before = graph, after, before

    def op(self, op_type: str, *inputs: ir.Value, **attributes: int | Sequence[int]) -> ir.Value:
        """Add a node with one output, and return the output."""
        attrs = ir.convenience.convert_attributes(attributes)
        node = ir.Node("", op_type, inputs, attrs, num_outputs=1)
        if self.after is not None:
            self.graph.insert_after(self.after, node)
            self.after = node
        elif self.before is not None:
            self.graph.insert_before(self.before, node)
        else:
            self.graph.append(node)
        return node.outputs[0]


def _more_outputs(node: ir.Node, dims: Iterable[int | None]) -> Vectors:
    """Give ``node`` three more float32 outputs of these dims, and return them."""
    shape = list(dims)
    node.resize_outputs(len(node.outputs) + 3)
    for value in node.outputs[-3:]:
        value.type, value.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(shape)
    return list(node.outputs[-3:])
