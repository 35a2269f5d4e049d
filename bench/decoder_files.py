"""Write one decoder with random weights as an ONNX step with past, and as GGUF for llama.cpp.

The network is that of Llama: RMSNorm, rotary positions, grouped queries, SwiGLU, and one table for
tokens and logits.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 23
MOST_POSITIONS = 4096
BASE = 10_000.0
EPSILON = 1e-5
ALL = "past + count"


@dataclass(frozen=True)
class Size:
    """The sizes of a network: ``groups`` heads of keys serve ``heads`` heads of queries."""

    hidden: int
    layers: int
    heads: int
    groups: int
    inner: int
    words: int

    @property
    def head(self) -> int:
        """The size of a head."""
        return self.hidden // self.heads

    def products(self) -> dict[str, tuple[int, int]]:
        """Return rows and columns of the products of a layer, by their names in GGUF."""
        keys = self.groups * self.head
        return {
            "attn_q": (self.hidden, self.hidden),
            "attn_k": (self.hidden, keys),
            "attn_v": (self.hidden, keys),
            "attn_output": (self.hidden, self.hidden),
            "ffn_gate": (self.hidden, self.inner),
            "ffn_up": (self.hidden, self.inner),
            "ffn_down": (self.inner, self.hidden),
        }


SIZES = {
    "tiny": Size(128, 2, 4, 2, 256, 512),
    "311M": Size(1024, 24, 16, 8, 2752, 32_000),
    "1B": Size(2048, 22, 32, 4, 5632, 32_000),
}


def weights(size: Size) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name in GGUF and the numbers of each weight, rows by columns as x @ weight."""
    random = np.random.default_rng(0)
    table = random.standard_normal((size.words, size.hidden), np.float32) * np.float32(0.02)
    yield "token_embd", table
    for layer in range(size.layers):
        for name, shape in size.products().items():
            factor = np.float32(shape[0] ** -0.5)
            yield f"blk.{layer}.{name}", random.standard_normal(shape, np.float32) * factor
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{name}", np.ones(size.hidden, np.float32)
    yield "output_norm", np.ones(size.hidden, np.float32)


def write_onnx(size: Size, path: Path) -> None:
    """Write the step: tokens, mask, positions and pasts become logits and the next pasts."""
    graph = _Graph()
    for name, array in weights(size):
        graph.initializers.append(numpy_helper.from_array(array, name))
    angles = np.outer(
        np.arange(MOST_POSITIONS), BASE ** -(np.arange(0, size.head, 2) / size.head)
    ).astype(np.float32)
    for name, array in (("cos", np.cos(angles)), ("sin", np.sin(angles))):
        graph.initializers.append(numpy_helper.from_array(array, name))
    x = graph.op("Gather", "token_embd", "input_ids")
    bias = _mask(graph)
    for layer in range(size.layers):
        x = _layer(graph, size, f"blk.{layer}", x, bias, layer)
    x = graph.op("RMSNormalization", x, "output_norm", epsilon=EPSILON)
    graph.op("MatMul", x, graph.op("Transpose", "token_embd", perm=[1, 0]), to="logits")
    cache = ["batch", size.groups, "past", size.head]
    pairs = [f"{layer}.{kind}" for layer in range(size.layers) for kind in ("key", "value")]
    integers = {
        "input_ids": ["batch", "count"],
        "attention_mask": ["batch", ALL],
        "position_ids": ["batch", "count"],
    }
    made = helper.make_graph(
        graph.nodes,
        "decoder",
        [helper.make_tensor_value_info(n, TensorProto.INT64, dims) for n, dims in integers.items()]
        + [_floats(f"past_key_values.{pair}", cache) for pair in pairs],
        [_floats("logits", ["batch", "count", size.words])]
        + [_floats(f"present.{p}", [*cache[:2], ALL, size.head]) for p in pairs],
        graph.initializers,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    onnx.save(model, path, save_as_external_data=True, location=f"{path.name}.data")


class _Graph:
    """The nodes and initializers so far."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def op(
        self, kind: str, *inputs: str, to: str = "", count: int = 0, **attributes: object
    ) -> str:
        """Add a node and return the name of its first result; it has ``count`` unnamed results."""
        name = to or f"value_{len(self.nodes)}"
        results = [name, *(f"{name}_{number}" for number in range(1, count))]
        self.nodes.append(helper.make_node(kind, list(inputs), results, **attributes))
        return name

    def ints(self, *numbers: int) -> str:
        """Return the name of a constant int64[N]."""
        name = f"constant_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(numbers, np.int64), name))
        return name

    def number(self, number: float) -> str:
        """Return the name of a constant float[]."""
        name = f"constant_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(number, np.float32), name))
        return name


def _floats(name: str, dims: list[str | int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def _mask(graph: _Graph) -> str:
    """Return float[batch, 1, count, all]: 0 where a token sees another one, else -1e9."""
    length = graph.op("Shape", "attention_mask", start=1, end=2)
    scalar = graph.op("Squeeze", length)
    zero, one = (graph.op("Squeeze", graph.ints(number)) for number in (0, 1))
    places = graph.op("Range", zero, scalar, one)
    own = graph.op("Unsqueeze", "position_ids", graph.ints(1, 3))
    is_past = graph.op("LessOrEqual", places, own)
    is_real = graph.op("Greater", "attention_mask", zero)
    both = graph.op("And", is_past, graph.op("Unsqueeze", is_real, graph.ints(1, 2)))
    return graph.op("Where", both, graph.number(0.0), graph.number(-1e9))


def _layer(graph: _Graph, size: Size, name: str, x: str, bias: str, number: int) -> str:
    """Add the nodes of a layer and return its result."""
    normed = graph.op("RMSNormalization", x, f"{name}.attn_norm", epsilon=EPSILON)
    heads = []
    for kind, count in (("q", size.heads), ("k", size.groups), ("v", size.groups)):
        rows = graph.op("MatMul", normed, f"{name}.attn_{kind}")
        rows = graph.op("Reshape", rows, graph.ints(0, 0, count, size.head))
        rows = graph.op("Transpose", rows, perm=[0, 2, 1, 3])
        if kind != "v":
            rows = graph.op("RotaryEmbedding", rows, "cos", "sin", "position_ids", interleaved=1)
        heads.append(rows)
    pasts = [f"past_key_values.{number}.{kind}" for kind in ("key", "value")]
    y = f"attention_{number}"
    presents = [f"present.{number}.{kind}" for kind in ("key", "value")]
    graph.nodes.append(helper.make_node("Attention", [*heads, bias, *pasts], [y, *presents]))
    rows = graph.op("Transpose", y, perm=[0, 2, 1, 3])
    rows = graph.op("Reshape", rows, graph.ints(0, 0, size.hidden))
    x = graph.op("Add", x, graph.op("MatMul", rows, f"{name}.attn_output"))
    normed = graph.op("RMSNormalization", x, f"{name}.ffn_norm", epsilon=EPSILON)
    gate = graph.op("MatMul", normed, f"{name}.ffn_gate")
    gate = graph.op("Mul", gate, graph.op("Sigmoid", gate))
    inner = graph.op("Mul", gate, graph.op("MatMul", normed, f"{name}.ffn_up"))
    return graph.op("Add", x, graph.op("MatMul", inner, f"{name}.ffn_down"))


def write_gguf(size: Size, path: Path) -> None:
    """Write the weights with Q4_0 blocks, including the table; needs the package ``gguf``."""
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(MOST_POSITIONS)
    writer.add_embedding_length(size.hidden)
    writer.add_block_count(size.layers)
    writer.add_feed_forward_length(size.inner)
    writer.add_head_count(size.heads)
    writer.add_head_count_kv(size.groups)
    writer.add_rope_dimension_count(size.head)
    writer.add_rope_freq_base(BASE)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_vocab_size(size.words)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([f"<{number}>" for number in range(size.words)])
    writer.add_token_scores([0.0] * size.words)
    writer.add_token_types([gguf.TokenType.NORMAL] * size.words)
    kind = gguf.GGMLQuantizationType.Q4_0
    for name, array in weights(size):
        if array.ndim == 1:
            writer.add_tensor(f"{name}.weight", array)
            continue
        rows = array if name == "token_embd" else np.ascontiguousarray(array.T)
        writer.add_tensor(f"{name}.weight", gguf.quants.quantize(rows, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(folder: Path, name: str) -> None:
    """Write the files of the network ``name``, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / f"{name}.onnx").exists():
        write_onnx(SIZES[name], folder / f"{name}.onnx")
    if not (folder / f"{name}.gguf").exists():
        write_gguf(SIZES[name], folder / f"{name}.gguf")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
