"""``weights=int4``, ``int8`` or ``nf4``: products with quantized weights, only on request.

A Gather of rows of a constant table becomes ``com.microsoft.GatherBlockQuantized``, or standard
operators with nf4. With nf4, a product becomes ``com.microsoft.MatMulBnb4``, whose kernel turns the
weight into floats in each run: one row took 3.6 of the float32 time. With the other types, a MatMul
or Gemm with a constant weight becomes ``com.microsoft.MatMulNBits``, whose kernel also rounds each
block of the other operand to 8 bits (``accuracy_level`` 4). On one row this took 0.2 to 0.5 of the
float32 time, and without it more than float32; the error hardly grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.approximation import note_approximation
from smelt.ir.build import Builder
from smelt.ir.constants import Constants, is_constant
from smelt.ir.node_inputs import optional_input
from smelt.ir.pattern import Op, op, var
from smelt.ir.rule import Match, Miss, Replacement, Rule
from smelt.operators.onnxruntime.four_bits import NF4
from smelt.operators.onnxruntime.microsoft.declared import DOMAIN
from smelt.operators.onnxruntime.table_lookup import nf4_rows
from smelt.targets.base import Plan
from smelt.targets.ort.blocks import pack, pack_nf4
from smelt.targets.ort.options import WEIGHTS, Options

FEWEST = 1 << 16
"""Weights with fewer elements stay: at 128 x 128 products take up to 1.3 of the float32 time."""

FEWEST_ROWS = 64
"""Weights with fewer rows stay: a 32 x 2048 product takes 1.16 of the float32 time."""

NF4_TYPE = 1
"""The ``quant_type`` of MatMulBnb4 for NF4."""

FIRST = 100
"""The benefit of these rules, higher than that of choices, which match some of the same nodes."""

Read: TypeAlias = "tuple[ir.Value, bool]"
"""A constant of 2 dims, and whether the product reads it transposed."""


class Weights:
    """The rules, and a cache of quantized weights, so that shared weights stay shared."""

    def __init__(self, options: Options) -> None:
        """Begin without packed weights; ``packed`` shares those of equal constants."""
        self.options, self.bits = options, WEIGHTS[options.weights]
        self.is_nf4 = options.weights == "nf4"
        self.packed: dict[tuple[object, ...], list[ir.Value]] = {}

    def rules(self) -> list[Rule]:
        """Return the rules for MatMul, Gemm, Gather, and the fusion of a bias.

        A transposed weight has a rule of its own, because a choice matches as many nodes.
        """
        product = op("MatMulNBits", var("x"), domain=DOMAIN, rest=True, name="product")
        transposed, name = op("Transpose", var("source")), f"weights:{self.options.weights}"
        return [
            _rule(f"{name}-transposed", op("MatMul", var("x"), transposed), self.matmul),
            _rule(name, op("MatMul", var("x"), var("w")), self.matmul),
            _rule(f"{name}-gemm", op("Gemm", var("x"), var("w"), rest=True), self.gemm),
            _rule(f"{name}-rows", op("Gather", var("table"), var("indices")), self.rows),
            _rule("weights:bias", op("Add", product, var("bias"), commutative=True), _with_bias),
        ]

    def matmul(self, m: Match, b: Builder) -> Replacement:
        """Replace a MatMul with a constant weight."""
        return self.product(m, b, transposed=False, factor=1.0)

    def gemm(self, m: Match, b: Builder) -> Replacement:
        """Return the product with ``alpha`` in its scales, plus ``beta`` times the summand."""
        attributes = m.root.attributes
        if attributes.get_int("transA", 0):
            return Miss("transA of the Gemm is 1")
        transposed = bool(attributes.get_int("transB", 0))
        result = self.product(m, b, transposed, attributes.get_float("alpha", 1.0))
        summand = optional_input(m.root, 2)
        if not isinstance(result, ir.Value) or summand is None:
            return result
        beta = attributes.get_float("beta", 1.0)
        if beta != 1:
            summand = b.op("Mul", summand, b.const_like(beta, summand))
        return b.op("Add", result, summand)

    def product(self, m: Match, b: Builder, transposed: bool, factor: float) -> Replacement:
        """Build the MatMulNBits node, or return a Miss if the operands do not fit."""
        x = m["x"]
        if x.dtype != ir.DataType.FLOAT:
            return Miss("the other operand is not float32")
        if x.shape is None:
            return Miss("the rank of the other operand is unknown")
        if len(x.shape) < 2:
            return Miss("the other operand is a vector or a scalar")
        weight = _constant_source(m.root.inputs[1])
        if weight is None:
            return None
        source, source_is_transposed = weight
        rows, columns = _sizes(source, source_is_transposed != transposed)
        if rows * columns < FEWEST or rows < FEWEST_ROWS:
            return Miss("the weight is small: the product would be no faster")
        parts = self.parts(source, source_is_transposed != transposed, factor, m.constants, b)
        if parts is None:
            return Miss("the weight has infinities or NaN")
        if self.is_nf4:
            return b.op(
                "MatMulBnb4",
                *(x, *parts),
                domain=DOMAIN,
                K=rows,
                N=columns,
                block_size=self.options.block,
                quant_type=NF4_TYPE,
            )
        return b.op(
            "MatMulNBits",
            *(x, *parts),
            domain=DOMAIN,
            K=rows,
            N=columns,
            bits=self.bits,
            block_size=self.options.block,
            accuracy_level=4,
        )

    def rows(self, m: Match, b: Builder) -> Replacement:
        """Replace a Gather of rows of a constant table; its codes are those of a tied product."""
        weight = _constant_source(m["table"])
        if weight is None:
            return None
        source, is_transposed = weight
        count, length = _sizes(source, is_transposed)
        if m.root.attributes.get_int("axis", 0) not in (0, -2):
            return Miss("the Gather does not read rows")
        if m["table"].dtype != ir.DataType.FLOAT:
            return Miss("the table is not float32")
        if m["indices"].shape is None:
            return Miss("the rank of the indices is unknown")
        if count * length < FEWEST or length % self.options.block:
            return Miss("the table is small, or blocks do not fill its rows")
        parts = self.parts(source, not is_transposed, 1.0, m.constants, b)
        if parts is None:
            return Miss("the table has infinities or NaN")
        codes, *others = parts
        bytes_per_row = length * self.bits // 8
        stored = b.op("Reshape", codes, b.const_i64([count, bytes_per_row]))
        if self.is_nf4:
            (flat,) = others
            scales = b.op("Reshape", flat, b.const_i64([count, length // self.options.block]))
            block = self.options.block
            return nf4_rows(b, stored, m["indices"], scales, block, high_first=True)
        return b.op(
            "GatherBlockQuantized",
            stored,
            *(m["indices"], *others),
            domain=DOMAIN,
            bits=self.bits,
            block_size=self.options.block,
            quantize_axis=1,
            gather_axis=0,
        )

    def parts(
        self, source: ir.Value, is_transposed: bool, factor: float, constants: Constants, b: Builder
    ) -> list[ir.Value] | None:
        """Return codes, scales and zero points as constants in the graph that holds the weight.

        Returns None if the weight has infinities or NaN.
        """
        key = (source, is_transposed, factor)
        if key in self.packed:
            return self.packed[key]
        array = constants.get(source, None)
        if array is None or not np.isfinite(array.astype(np.float32)).all():
            return None
        weight = (array.T if is_transposed else array).astype(np.float32)
        block = self.options.block
        packed = (
            pack_nf4(weight, block)
            if self.is_nf4
            else pack(weight, self.bits, block, self.options.symmetric)
        )
        factors = packed.scales * np.float32(factor)
        builder = (
            b
            if b.in_function
            else Builder(b.model, _graph_of_constant(source), b.shapes, spills=True)
        )
        arrays = {"codes": packed.codes, "scales": factors, "zeros": packed.zeros}
        parts = [
            builder.constant(part, name=f"{source.name}_{name}")
            for name, part in arrays.items()
            if part is not None
        ]
        if not b.in_function:  # in functions, constants are nodes in front of one consumer
            self.packed[key] = parts
        return parts


def _rule(name: str, pattern: Op, build: Callable[[Match, Builder], Replacement]) -> Rule:
    """Return a rule that goes before all others, because they would match the same products."""
    return Rule(name, pattern, build, benefit=FIRST)


def _constant_source(value: ir.Value | None) -> Read | None:
    """Return the constant from which ``value`` is made, and whether it is transposed.

    Looks through casts to float32, 2-dim transposes and Identity; None if something else is met.
    """
    is_transposed = False
    while not is_constant(value):
        node = value.producer() if value is not None else None
        if node is None or node.domain or node.op_type not in ("Cast", "Transpose", "Identity"):
            return None
        if node.op_type == "Cast" and node.attributes.get_int("to", 0) != ir.DataType.FLOAT:
            return None
        is_transposed ^= node.op_type == "Transpose" and _swaps_two_dims(node)
        value = node.inputs[0]
    assert value is not None
    is_matrix = value.shape is not None and len(value.shape) == 2
    return (value, is_transposed) if is_matrix and value.dtype in FLOATS else None


def _swaps_two_dims(node: ir.Node) -> bool:
    """True if a Transpose of 2 dims swaps them."""
    perm = node.attributes.get("perm")
    return perm is None or list(perm.as_ints()) == [1, 0]


FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
"""Element types of weights; 16-bit weights are cast where they are read."""


def _sizes(source: ir.Value, is_transposed: bool) -> tuple[int, int]:
    """Return rows and columns of a constant as the product reads it."""
    assert source.const_value is not None or source.shape is not None
    rows, columns = (int(dim) for dim in source.shape or ())  # type: ignore[arg-type]
    return (columns, rows) if is_transposed else (rows, columns)


def _graph_of_constant(value: ir.Value) -> ir.Graph:
    """Return the graph that holds a constant; branches share constants of the outer graph."""
    node = value.producer()
    graph = value.graph if node is None else node.graph
    assert isinstance(graph, ir.Graph)
    return graph


def _with_bias(m: Match, b: Builder) -> Replacement:
    """Fuse the sum with a bias of one number per column into the product."""
    product, bias = m.node("product"), m["bias"]
    columns = product.attributes.get_int("N")
    if bias.dtype != ir.DataType.FLOAT:
        return Miss("the summand is not float32")
    if bias.shape is None or list(bias.shape) != [columns]:
        return Miss("the summand is not a vector of one number for each column")
    inputs = [*product.inputs, *(None,) * 6][:6]
    bias_already_added = inputs[5]
    if bias_already_added is not None:
        return None
    return b.like(product, *inputs[:5], bias)


def finish_weights(plan: Plan[None, None]) -> None:
    """Mark the model as approximated and drop unused weights; runs after selection."""
    options: Options = plan.options
    if not options.weights or not any(map(_is_packed, scope.nodes(plan.model))):
        return
    note_approximation(plan.model, f"weights of {options.weights}, {options.block} to a scale")
    for graph in scope.graphs(plan.model):
        for name, value in list(graph.initializers.items()):
            if not value.is_graph_input() and scope.is_dead(value):
                del graph.initializers[name]


def _is_packed(node: ir.Node) -> bool:
    """True for the operators that these rules write, and a read of rows of NF4."""
    if node.domain == DOMAIN:
        return node.op_type in ("MatMulNBits", "MatMulBnb4", "GatherBlockQuantized")
    table = node.inputs[0].const_value if node.op_type == "Gather" and node.inputs[0] else None
    return table is not None and table.size == len(NF4) and np.array_equal(table.numpy(), NF4)


def rules_for_weights(options: Options) -> Sequence[Rule]:
    """Return the rules for ``options``; empty if no storage type is requested."""
    return Weights(options).rules() if options.weights else ()
