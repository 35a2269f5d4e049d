"""A graph in the making: values to draw from, and one way to add to them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Attribute, Builder
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.signature import Signature, misfits, signature_of

FLOAT, INT, BOOL = ir.DataType.FLOAT, ir.DataType.INT64, ir.DataType.BOOL
FLOATS = (FLOAT, ir.DataType.DOUBLE)
LARGEST = 4096
"""Elements of a value, symbolic dims apart."""

INPUTS: dict[str, tuple[ir.DataType, list[str | int]]] = {
    "x": (FLOAT, ["N", 4, 6]),
    "z": (FLOAT, ["N", 4, 6]),
    "w": (FLOAT, ["N", 6, 4]),
    "image": (FLOAT, ["N", 4, 5, 6]),
    "row": (FLOAT, ["N", "M"]),
    "index": (INT, ["N", 4]),
    "wide": (ir.DataType.DOUBLE, ["N", 3]),
    "flag": (BOOL, []),
}


REDUCTIONS = sorted(opset.REDUCTIONS)
AXES_ARE_AN_INPUT = {"ReduceSum": 13}
"""The opset from which on they are, where it is not 18."""


class NoMove(Exception):
    """Nothing in the draft is suitable for the move that was drawn."""


class Draft:
    """A model that grows by moves; every choice comes from ``rng``."""

    def __init__(self, rng: random.Random, version: int = 23) -> None:
        self.rng = rng
        graph = ir.Graph([], [], nodes=[], opset_imports={"": version}, name="drawn")
        self.model = ir.Model(graph, ir_version=10)
        for name, (dtype, dims) in INPUTS.items():
            value = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(dims))
            graph.inputs.append(value)
        self.b = Builder(self.model, graph, ShapeInference(self.model))
        self.values: list[ir.Value] = list(graph.inputs)

    def op(self, op_type: str, *inputs: ir.Value | None, **attributes: Attribute) -> ir.Value:
        """One node; its result can be drawn from now on.

        Raises NoMove if its shape is unknown, or the opset has no such operator or form of it.
        """
        return self.ops(op_type, *inputs, outputs=1, **attributes)[0]

    def ops(
        self, op_type: str, *inputs: ir.Value | None, outputs: int, **attributes: Attribute
    ) -> tuple[ir.Value, ...]:
        """One node with several results."""
        signature = signature_of(op_type, self.opset, "")
        if signature is None or len(inputs) > signature.max_inputs:
            raise NoMove(op_type)
        if not attributes.keys() <= signature.attributes.keys():
            raise NoMove(op_type)
        if op_type == "Clip" and any(v is not None and len(dims(v)) > 1 for v in inputs[1:]):
            raise NoMove(op_type)  # The reference evaluator takes bounds that are no scalars.
        results = self.b.ops(op_type, *inputs, outputs=outputs, **attributes)
        node = results[0].producer()
        assert node is not None
        if (
            not _is_valid(node, signature)
            or any(r.dtype is None or r.shape is None for r in results)
            or any(not 0 < size(r) <= LARGEST for r in results)
        ):
            self.b.graph.remove(node, safe=True)
            raise NoMove(op_type)
        self.values += results
        return results

    @property
    def opset(self) -> int:
        return self.model.opset_imports[""]

    def reduce(
        self, kind: str, x: ir.Value, axes: Sequence[int] | None, **attributes: int
    ) -> ir.Value:
        """A reduction; axes are an attribute or an input, as the opset has it. None names none."""
        if axes is None:
            return self.op(kind, x, **attributes)
        if self.opset >= AXES_ARE_AN_INPUT.get(kind, 18):
            return self.op(kind, x, self.ints(*axes), **attributes)
        return self.op(kind, x, axes=ir.AttrInt64s("axes", list(axes)), **attributes)

    def halves(self, x: ir.Value, axis: int) -> tuple[ir.Value, ...]:
        """Two equal parts; from opset 18 on their number is an attribute."""
        counted = {"num_outputs": 2} if self.opset >= 18 else {}
        return self.ops("Split", x, outputs=2, axis=axis, **counted)

    def const(self, array: object, dtype: ir.DataType = FLOAT) -> ir.Value:
        """A constant: an initializer or a node, by chance."""
        held = np.asarray(array, dtype.numpy())
        if self.rng.random() < 0.5:
            return self.b.constant(held)
        return self.b.op("Constant", value=ir.Tensor(held))

    def ints(self, *items: int) -> ir.Value:
        """A vector of int64."""
        return self.const(list(items), INT)

    def normal(self, *shape: int, dtype: ir.DataType = FLOAT) -> ir.Value:
        """A constant of normal numbers."""
        return self.const(self.generator().normal(size=shape), dtype)

    def generator(self) -> np.random.Generator:
        """NumPy's generator, seeded by ours."""
        return np.random.default_rng(self.rng.getrandbits(32))

    def pick(self, suits: Callable[[ir.Value], bool] = lambda value: True) -> ir.Value:
        """A value that suits, young ones first; raises NoMove."""
        young = self.values[-6:] if self.rng.random() < 0.7 else self.values
        for pool in (young, self.values):
            found = [value for value in pool if suits(value)]
            if found:
                return self.rng.choice(found)
        raise NoMove

    def float(self, rank: int | None = None) -> ir.Value:
        """A float32 value, of ``rank`` if given."""
        return self.pick(lambda v: v.dtype == FLOAT and (rank is None or len(dims(v)) == rank))

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability


def _is_valid(node: ir.Node, signature: Signature) -> bool:
    """False for a node that ``smelt.load`` refuses, such as an Or of floats; inference takes some."""
    operands = zip(signature.inputs, node.inputs, strict=False)
    if any(v is not None and f.types and v.dtype not in f.types for f, v in operands):
        return False
    if node.op_type == "MatMul":
        rows, columns = (dims(value) for value in node.inputs if value is not None)
        inner = rows[-1], columns[-2 if len(columns) > 1 else 0]
        if all(isinstance(dim, int) for dim in inner) and inner[0] != inner[1]:
            return False
    if node.op_type == "Mod" and "fmod" not in node.attributes:
        return all(value is None or value.dtype not in FLOATS for value in node.inputs)
    return not any(misfits(node, signature))


Move: TypeAlias = Callable[[Draft], None]


def dims(value: ir.Value) -> list[int | ir.SymbolicDim]:
    """The dims of a value in a draft, where all ranks are known."""
    assert value.shape is not None
    return list(value.shape.dims)


def static(value: ir.Value, axis: int) -> int:
    """The size of one dim; raises NoMove if it is symbolic."""
    dim = dims(value)[axis]
    if not isinstance(dim, int):
        raise NoMove
    return dim


def needs_some(value: ir.Value) -> None:
    """Raises NoMove if a dim may be 0: runtimes differ in what they reduce nothing to."""
    if any(not isinstance(dim, int) and dim.value not in ("N", "M") for dim in dims(value)):
        raise NoMove


def size(value: ir.Value) -> int:
    """Elements of a value, with 1 for symbolic dims."""
    return int(np.prod([dim if isinstance(dim, int) else 1 for dim in dims(value)]))


def permutation(draft: Draft, rank: int) -> list[int]:
    """A random order of the axes."""
    return draft.rng.sample(range(rank), rank)


def inverse(perm: Sequence[int]) -> list[int]:
    """The order that undoes ``perm``."""
    return [list(perm).index(axis) for axis in range(len(perm))]
