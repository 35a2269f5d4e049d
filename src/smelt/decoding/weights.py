"""Give a decoder the weights of a file, by name: GGUF, safetensors, npz or orbax.

    before   W float32[N,K];  Transpose(W) ─> MatMul;  Gather(W, ids)
    after    DequantizeLinear(codes int4[K,N], scales) ─> MatMul;  Gather(codes), Gather(scales)

Quantized blocks with a scale alone keep their bits. Those with an offset, too, become float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx_ir as ir

from smelt.decoding.gguf_names import renamed
from smelt.errors import UsageError, listed
from smelt.frontends.onnx.load import bring_to_opset
from smelt.frontends.weights.cast import cast, is_castable
from smelt.frontends.weights.checkpoint import open_checkpoint
from smelt.frontends.weights.fill import comparison_key
from smelt.frontends.weights.gguf import BLOCKS, MAGIC, Blocks, open_gguf
from smelt.ir.build import Builder
from smelt.ir.opset import opset_of
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.onnxruntime.microsoft.packed import rows_body
from smelt.precision.int8.linear import Codes
from smelt.targets.ort.blocks import two_a_byte

OPSET_OF_BLOCKS = 21
"""The first opset whose DequantizeLinear has blocks."""

SHOWN = 6
"""How many names an error lists."""

_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"


def read_weights(path: str | Path) -> dict[str, ir.TensorProtocol]:
    """Return the tensors of the file or folder at ``path`` by the names of transformers.

    Raises UsageError E609 if there is nothing, E805 for unknown names, and InvalidModel E341 for a
    damaged file or an unknown format.
    """
    location = Path(path)
    if location.is_file():
        with location.open("rb") as file:
            if file.read(len(MAGIC)) == MAGIC:
                return renamed(open_gguf(location), location)
    return dict(open_checkpoint(location))


def feed(model: ir.Model, tensors: Mapping[str, ir.TensorProtocol]) -> list[str]:
    """Replace the weights of ``model`` by ``tensors``; return what became of quantized ones.

    Names are compared from their ends, so that the model's may begin with further words. Raises
    UsageError E805 if a tensor has no weight in the model, if a weight has no tensor or two, or if
    shapes or types differ; the model is unchanged then.
    """
    matches = _matches(model, tensors)
    block_types = [_blocks(tensor) for _, tensor in matches]
    if any(each is not None and each.type.bits for each in block_types):
        bring_to_opset(model, max(OPSET_OF_BLOCKS, opset_of(model)))
    shapes = ShapeInference(model)
    told: dict[str, int] = {}
    for (name, tensor), blocks in zip(matches, block_types, strict=True):
        value = model.graph.initializers[name]
        if blocks is None:
            value.const_value = _as_type_of(value, tensor)
            continue
        why = _reason_for_floats(value, blocks)
        if why is None:
            codes = _codes(blocks)
            _write_codes(model, shapes, value, codes)
            what = f"{blocks.type.name} as {_type_name(codes)} in blocks of {codes.block}"
        else:
            value.const_value = _as_type_of(value, tensor)
            dtype = value.dtype or tensor.dtype
            what = f"{blocks.type.name} as {dtype.numpy()}, because {why}"
        told[what] = told.get(what, 0) + 1
    return [f"{count} tensors of {what}" for what, count in told.items()]


def _reason_for_floats(value: ir.Value, blocks: Blocks) -> str | None:
    """Return why the weight ``value`` cannot be the codes of ``blocks``, None if it can."""
    if not blocks.type.bits:
        return "its blocks have offsets"
    if value.dtype != ir.DataType.FLOAT:
        return "the model has this type"
    is_matrix = len(blocks.data.shape) == 3
    return (
        None if is_matrix and not value.is_graph_output() else "it is not a matrix of an operator"
    )


def _matches(
    model: ir.Model, tensors: Mapping[str, ir.TensorProtocol]
) -> list[tuple[str, ir.TensorProtocol]]:
    """Return the names of weights, each with its tensor; raises UsageError E805."""
    weights = {comparison_key(name): name for name in model.graph.initializers}
    found: dict[str, ir.TensorProtocol] = {}
    unused, repeated = [], []
    for name, tensor in tensors.items():
        weight = _weight_called(comparison_key(name), weights)
        if weight is None:
            unused.append(name)
        elif weight in found:
            repeated.append(f"{name} for {weight}")
        else:
            found[weight] = tensor
    head = _weight_called(comparison_key(_HEAD), weights)
    if head is not None and head not in found and _EMBEDDING in tensors:
        found[head] = tensors[_EMBEDDING]  # tied: the file has the table once
    unfed = [
        name
        for name, value in model.graph.initializers.items()
        if name not in found and _is_weight(name, value)
    ]
    problems = {
        "the model has no": unused,
        "the file lacks": unfed,
        "the file has a second tensor": repeated,
        "shapes or types differ:": [
            text
            for name, tensor in found.items()
            if (text := _difference(name, model.graph.initializers[name], tensor))
        ],
    }
    if any(problems.values()):
        raise UsageError(
            "E805",
            "the weights do not fit the decoder",
            why="; ".join(f"{why} {listed(x, SHOWN)}" for why, x in problems.items() if x),
            fix="export this model with the names of its parameters: by torch.onnx.export with "
            "dynamo=True, or do_constant_folding=False",
        )
    return list(found.items())


def _weight_called(key: str, weights: Mapping[str, str]) -> str | None:
    """Return the name of the weight with the comparison key ``key``, which may lack ``model_`` in
    front or have other words there; None if there is none, or several."""
    for exact in (key, key.removeprefix("model_")):
        if exact in weights:
            return weights[exact]
    longer = [name for each, name in weights.items() if each.endswith(f"_{key}")]
    return longer[0] if len(longer) == 1 else None


def _is_weight(name: str, value: ir.Value) -> bool:
    """True if ``name`` is that of a parameter of floats, such as ``norm.weight``."""
    is_float = value.dtype is not None and value.dtype.is_floating_point()
    return is_float and name.endswith((".weight", ".bias"))


def _difference(name: str, value: ir.Value, tensor: ir.TensorProtocol) -> str | None:
    """Return how a weight and its tensor differ in shape or in type; None if they do not.

    Two float types do not count as different: the tensor is cast to the type of the weight.
    """
    dims = [] if value.shape is None else list(value.shape.dims)
    given = list(tensor.shape.numpy())
    if dims != given:
        return f"{name} is {dims} in the model and {given} in the file"
    if value.dtype in (None, tensor.dtype) or is_castable(tensor, value.dtype):
        return None
    types = [each.short_name() for each in (value.dtype, tensor.dtype)]
    return f"{name} is {types[0]} in the model and {types[1]} in the file"


def _blocks(tensor: ir.TensorProtocol) -> Blocks | None:
    """Return the quantized blocks of ``tensor``, None for numbers that stand one by one."""
    blocks = tensor.meta.get(BLOCKS)
    return blocks if isinstance(blocks, Blocks) else None


def _as_type_of(value: ir.Value, tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    """Return ``tensor`` with the name of ``value``, in its element type when it is read."""
    if value.dtype is not None and is_castable(tensor, value.dtype):
        return cast(tensor, value.dtype, value.name)
    tensor.name = value.name
    return tensor


def _codes(blocks: Blocks) -> Codes:
    """Return the codes int[N,K] and scales float32[N, K / block] of a matrix of blocks."""
    rows, _, nbytes = blocks.data.shape
    codes, scales, _ = blocks.type.split(blocks.data.reshape(-1, nbytes))
    if blocks.type.bits == 4:
        codes = codes.astype(ml_dtypes.int4)
    block = codes.shape[1] // scales.shape[1]
    return Codes(codes.reshape(rows, -1), scales.reshape(rows, -1), 1, block)


def _type_name(codes: Codes) -> str:
    """Return ``int4`` or ``int8``."""
    return "int4" if codes.codes.dtype == ml_dtypes.int4 else "int8"


def _write_codes(model: ir.Model, shapes: ShapeInference, value: ir.Value, codes: Codes) -> None:
    """Let all readers of the weight ``value`` read its ``codes``; drop the weight.

    A Transpose is applied to the codes, and a Gather reads rows of codes.
    """
    stem, first = value.name or "weight", next(iter(model.graph))
    for node, index in list(value.uses()):
        is_data = index == 0 and not node.domain and not node.outputs[0].is_graph_output()
        result = None
        at = Builder(model, model.graph, shapes, before=first)
        if is_data and node.op_type == "Transpose" and _swaps_axes(node):
            turned = Codes(codes.codes.T.copy(), codes.scale.T.copy(), 0, codes.block)
            result = _dequantized(at, turned, stem)
        elif is_data and node.op_type == "Gather":
            result = _rows(model, shapes, node, codes, stem)
        if result is None:
            node.replace_input_with(index, _dequantized(at, codes, stem))
            continue
        node.outputs[0].replace_all_uses_with(result, replace_graph_outputs=True)
        assert node.graph is not None
        if first is node:
            first = result.producer() or node
        node.graph.remove(node, safe=True)
    del model.graph.initializers[stem]


def _swaps_axes(node: ir.Node) -> bool:
    """True if the Transpose ``node`` swaps the two axes of a matrix."""
    return list(node.attributes.get_ints("perm", (1, 0))) == [1, 0]


def _dequantized(b: Builder, codes: Codes, stem: str) -> ir.Value:
    """Return the numbers of ``codes`` by a DequantizeLinear."""
    stored = b.constant(codes.codes, name=b.free_name(f"{stem}_codes"))
    scale = b.constant(codes.scale, name=b.free_name(f"{stem}_scales"))
    return b.op("DequantizeLinear", stored, scale, axis=codes.axis, block_size=codes.block)


def _rows(
    model: ir.Model, shapes: ShapeInference, node: ir.Node, codes: Codes, stem: str
) -> ir.Value | None:
    """Return the rows that the Gather ``node`` reads; None along another axis or at indices of
    unknown rank."""
    indices = node.inputs[1]
    if node.attributes.get_int("axis", 0) or indices is None or indices.shape is None:
        return None
    assert node.graph is not None
    bits = 4 if codes.codes.dtype == ml_dtypes.int4 else 8
    unsigned = (codes.codes.astype(np.int16) + (1 << (bits - 1))).astype(np.uint8)
    b = Builder(model, node.graph, shapes, before=node)
    stored = b.constant(two_a_byte(unsigned, bits), name=b.free_name(f"{stem}_codes"))
    scale = b.constant(codes.scale, name=b.free_name(f"{stem}_scales"))
    form = {"bits": bits, "quantize_axis": 1, "gather_axis": 0, "block_size": codes.block}
    rows = rows_body(b, [stored, indices, scale], form)
    return None if rows is None else rows[0]
