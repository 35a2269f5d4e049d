"""Find the nodes of a model that can be quantized, in groups that read the same activation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import Constants, is_constant
from smelt.ir.node_inputs import optional_input
from smelt.ir.symbolic_dims.dims import size_of

FEWEST = 32
"""Weights with fewer elements stay in float."""

NO_SIZES: Mapping[str, int] = {}

PRODUCTS = frozenset({"Conv", "MatMul", "Gemm"})


@dataclass(frozen=True)
class Weight:
    """A constant operand: its value, and whether the node reads it through a Transpose.

    In the operand as the node reads it, ``axis`` is the axis of output channels, and ``inner`` the
    axis that the product sums over, -1 if there are several.
    """

    value: ir.Value
    transposed: bool
    axis: int
    inner: int


@dataclass(frozen=True)
class Candidate:
    """Products that read one activation; they are quantized together.

    ``nodes`` are the names of their first results. ``source`` is the name of the activation, empty
    if only the weights can be quantized. ``bytes_saved`` is the gain by int8 weights, ``macs`` the
    number of multiplications in one run, which reads ``read`` elements of the activation and writes
    ``written`` elements. ``forms`` are the possible forms, the best first. ``kind`` is ``Conv``,
    ``depthwise`` for a convolution with groups of one channel, or ``product``. ``stores_codes``: in
    the form ``static``, the results are quantized, too.
    """

    nodes: tuple[str, ...]
    source: str
    operator: str
    bytes_saved: int
    macs: int
    forms: tuple[str, ...]
    weights: int = 0
    read: int = 0
    written: int = 0
    kind: str = "product"
    stores_codes: bool = False

    @property
    def name(self) -> str:
        """The name of the first node, and the number of others."""
        more = f" and {len(self.nodes) - 1} more" if len(self.nodes) > 1 else ""
        return f"{self.nodes[0]}{more}"


@dataclass
class Found:
    """The candidates of a model in order; ``kept`` maps products that are none to the reason."""

    candidates: list[Candidate] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)


def find_candidates(model: ir.Model, sizes: Mapping[str, int], *, static: bool) -> Found:
    """Return the candidates of ``model``, whose MACs are counted at ``sizes``.

    Products that read one activation form one candidate, because they share its quantized copy.
    ``static``: activations may be quantized by measured ranges.
    """
    constants, found = Constants(), Found()
    groups: dict[tuple[bool, str], list[ir.Node]] = {}
    for node in scope.nodes(model):
        if node.domain or node.op_type not in PRODUCTS | {"Gather"}:
            continue
        weight = weight_of(node, constants)
        if isinstance(weight, str):
            if weight:
                found.kept[result_name(node)] = weight
            continue
        if node.graph is not model.graph:
            found.kept[result_name(node)] = "it is inside a branch, a loop or a function"
            continue
        source = node.inputs[0]
        assert source is not None
        # A product without integer kernel shares no activation, so it is a candidate of its own.
        alone = node.op_type == "Gather" or not can_be_static(node)
        key = (alone, result_name(node) if alone else str(source.name))
        groups.setdefault(key, []).append(node)
    for nodes in groups.values():
        found.candidates.append(_candidate(nodes, sizes, constants, static))
    return found


def _candidate(
    nodes: list[ir.Node], sizes: Mapping[str, int], constants: Constants, static: bool
) -> Candidate:
    """Return the candidate of ``nodes``, which read the same activation."""
    is_product = all(map(can_be_static, nodes))
    activation = nodes[0].inputs[0]
    assert activation is not None
    source = str(activation.name) if is_product else ""
    saved_per_element = 3  # float32 has 4 bytes, int8 one
    elements = macs = written = 0
    is_depthwise = False
    for node in nodes:
        weight = weight_of(node, constants)
        assert isinstance(weight, Weight)
        count = element_count(weight.value)
        elements += count
        is_depthwise = node.op_type == "Conv" and _dim(weight.value, 1) == 1
        if source:
            output = element_count(node.outputs[0], sizes)
            stored_axis = 1 - weight.axis if weight.transposed else weight.axis
            channels = _dim(weight.value, stored_axis)
            macs += output * count // max(channels, 1)
            written += output
    kinds = {node.op_type for node in nodes}
    forms = ["weights"]
    if source and static:
        forms.insert(0, "static")
    if source and "Conv" not in kinds:
        forms.insert(0, "dynamic")
    names = tuple(result_name(node) for node in nodes)
    kind = "product" if "Conv" not in kinds else "depthwise" if is_depthwise else "Conv"
    return Candidate(
        names,
        source,
        nodes[0].op_type,
        saved_per_element * elements,
        macs,
        tuple(forms),
        elements,
        element_count(activation, sizes) if source else 0,
        written,
        kind,
        stores_codes=kind != "product",
    )


def with_shared_weights_together(
    model: ir.Model, candidates: Sequence[Candidate]
) -> list[Candidate]:
    """Return ``candidates``, where those with the form ``weights`` alone and one weight are one.

    If a part of the readers read floats, the file would hold the weight in both types.
    """
    constants = Constants()
    by_name = {result_name(node): node for node in model.graph}
    made: dict[object, Candidate] = {}
    for each in candidates:
        weights = {weight_of(by_name[name], constants) for name in each.nodes}
        values = [weight.value for weight in weights if isinstance(weight, Weight)]
        key = values[0] if len(values) == 1 and each.forms == ("weights",) else each
        first = made.get(key)
        if first is None:
            made[key] = each
            continue
        made[key] = replace(
            first,
            nodes=(*first.nodes, *each.nodes),
            source="",
            bytes_saved=max(first.bytes_saved, each.bytes_saved),
            macs=first.macs + each.macs,
        )
    return list(made.values())


def weight_of(node: ir.Node, constants: Constants) -> Weight | str:
    """Return the weight of a product or Gather, or the reason why it cannot be quantized.

    The reason is empty if the operand is no constant, so that there is no weight at all.
    """
    operand = node.inputs[0 if node.op_type == "Gather" else 1]
    source, transposed = _constant_source(operand)
    if source is None:
        return ""
    rank = len(source.shape) if source.shape is not None else 0
    if source.dtype != ir.DataType.FLOAT:
        return f"its weight is {source.dtype.name.lower() if source.dtype else 'of no known type'}"
    if element_count(source) < FEWEST:
        return f"its weight has fewer than {FEWEST} elements"
    match node.op_type:
        case "Conv":
            result: Weight | str = Weight(source, transposed=False, axis=0, inner=-1)
            if transposed:
                result = "its weight is transposed in each run"
        case "Gather":
            first = node.attributes.get_int("axis", 0) == 0 and rank == 2 and not transposed
            result = Weight(source, False, 0, 1) if first else "it does not read rows of a matrix"
        case _:
            is_transposed_b = bool(node.attributes.get_int("transB", 0))
            channels, inner = (0, 1) if is_transposed_b else (1, 0)
            result = Weight(source, transposed, channels, inner)
            if rank != 2:
                result = "its weight is not a matrix"
    if isinstance(result, str):
        return result
    array = constants.get(source, None)
    if array is None or not np.isfinite(array).all():
        return "its weight holds NaN or infinity"
    return result


def _constant_source(value: ir.Value | None) -> tuple[ir.Value | None, bool]:
    """Return the constant behind Identity and 2-dim Transpose, and whether it is transposed."""
    transposed = False
    while value is not None and not is_constant(value):
        node = value.producer()
        if node is None or node.domain or node.op_type not in ("Transpose", "Identity"):
            return None, False
        if node.op_type == "Transpose":
            perm = node.attributes.get("perm")
            if perm is not None and list(perm.as_ints()) != [1, 0]:
                return None, False
            transposed = not transposed
        value = node.inputs[0]
    return value, transposed


def is_plain_gemm(node: ir.Node) -> bool:
    """True for a MatMul, and a Gemm with factors of 1 that does not transpose its activation."""
    attributes = node.attributes
    return node.op_type == "MatMul" or (
        attributes.get_float("alpha", 1.0) == 1.0
        and attributes.get_float("beta", 1.0) == 1.0
        and not attributes.get_int("transA", 0)
    )


def operand_array(weight: Weight, constants: Constants) -> np.ndarray:
    """Return the weight as its node reads it, transposed if a Transpose is between."""
    array = constants.get(weight.value, None)
    assert array is not None
    return array.T if weight.transposed else array


def can_be_static(node: ir.Node) -> bool:
    """True if integer kernels compute ``node``: a float32 Conv, MatMul or plain Gemm.

    Its activation must not be a constant, and the bias of a Gemm must be one.
    """
    source = node.inputs[0]
    if (
        node.op_type == "Gather"
        or source is None
        or source.dtype != ir.DataType.FLOAT
        or is_constant(source)
    ):
        return False
    bias = optional_input(node, 2)
    return node.op_type != "Gemm" or (is_plain_gemm(node) and (bias is None or is_constant(bias)))


def operand_name(node: ir.Node, index: int = 0) -> str:
    """Return the name of an operand that ``node`` has."""
    value = node.inputs[index]
    assert value is not None
    return str(value.name)


def result_name(node: ir.Node) -> str:
    """Return the name of the first result of ``node``, by which plans name the node."""
    return str(node.outputs[0].name)


def element_count(value: ir.Value, sizes: Mapping[str, int] = NO_SIZES) -> int:
    """Return the number of elements of ``value``; open dims without a size count as 1."""
    if value.shape is None:
        return 1
    dims = (size_of(dim, sizes) for dim in value.shape.dims)
    return math.prod(dim if isinstance(dim, int) else 1 for dim in dims)


def _dim(value: ir.Value, axis: int) -> int:
    """Return the size of ``axis`` of a constant."""
    dim = value.shape[axis] if value.shape is not None else 1
    return dim if isinstance(dim, int) else 1
