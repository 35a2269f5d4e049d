"""Write what exporters leave behind to ``tests/models``: small models of every exporter at hand.

    python -m bench.export_models [--only torchscript,dynamo,tf2onnx,jax2onnx] [--into tests/models]

Needs the exporters themselves (torch with onnxscript, tensorflow-cpu with tf2onnx, jax2onnx with
flax), which the tests do not: run it in an environment of its own. All weights are seeded.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

WIDTH, HEADS, LAYERS = 16, 2, 2


def _torch_models() -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    """Name, module, inputs, and names of dynamic dims of each input."""
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self, causal: bool) -> None:
            super().__init__()
            self.causal = causal
            self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
            self.out = nn.Linear(WIDTH, WIDTH)

        def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
            batch, length, _ = x.shape
            q, k, v = (
                layer(x).view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
                for layer in (self.q, self.k, self.v)
            )
            scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
            if mask is not None:
                scores = scores + (1.0 - mask[:, None, None, :]) * -10000.0
            if self.causal:
                future = torch.ones(length, length, dtype=torch.bool).triu(1)
                scores = scores.masked_fill(future, float("-inf"))
            mixed = torch.softmax(scores, -1) @ v
            return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))

    class Block(nn.Module):
        """Norms behind the sums as in BERT, or before the layers as in GPT-2."""

        def __init__(self, causal: bool) -> None:
            super().__init__()
            self.before = causal
            self.attention = Attention(causal)
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
            self.gelu = nn.GELU(approximate="tanh" if causal else "none")

        def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
            if self.before:
                x = x + self.attention(self.first(x), mask)
                return x + self.down(self.gelu(self.up(self.second(x))))
            x = self.first(x + self.attention(x, mask))
            return self.second(x + self.down(self.gelu(self.up(x))))

    class Bert(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(50, WIDTH), nn.Embedding(20, WIDTH)
            self.norm = nn.LayerNorm(WIDTH)
            self.blocks = nn.ModuleList(Block(causal=False) for _ in range(LAYERS))

        def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))[None]
            x = self.norm(x)
            for block in self.blocks:
                x = block(x, mask)
            return x

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(50, WIDTH), nn.Embedding(20, WIDTH)
            self.blocks = nn.ModuleList(Block(causal=True) for _ in range(LAYERS))
            self.norm = nn.LayerNorm(WIDTH)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))[None]
            for block in self.blocks:
                x = block(x)
            return self.norm(x) @ self.words.weight.T

    class Cnn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(
                *(nn.ZeroPad2d(1), nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
                *(nn.Conv2d(8, 8, 3, padding=1, groups=4), nn.BatchNorm2d(8), nn.Hardswish()),
                *(nn.MaxPool2d(2), nn.Conv2d(8, 8, 1), nn.SiLU(), nn.GroupNorm(2, 8)),
                *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)),
            )

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return self.body(image)

    class Llama(nn.Module):
        """RMS norm, rotary positions and a gated layer."""

        def __init__(self) -> None:
            super().__init__()
            self.attention = Attention(causal=True)
            self.scale = nn.Parameter(torch.rand(WIDTH) + 0.5)
            self.register_buffer("frequencies", torch.rand(WIDTH // 2))
            self.gate, self.up = nn.Linear(WIDTH, 32, bias=False), nn.Linear(WIDTH, 32, bias=False)
            self.down = nn.Linear(32, WIDTH, bias=False)

        def norm(self, x: torch.Tensor) -> torch.Tensor:
            mean = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
            return self.scale * (x * torch.rsqrt(mean + 1e-6)).to(x.dtype)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            angle = torch.arange(x.shape[1])[:, None] * self.frequencies[None]
            angle = torch.cat([angle, angle], -1)
            half = torch.cat([-x[..., WIDTH // 2 :], x[..., : WIDTH // 2]], -1)
            x = x * angle.cos() + half * angle.sin()
            x = x + self.attention(self.norm(x), None)
            y = self.norm(x)
            return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))

    torch.manual_seed(0)
    tokens = torch.randint(0, 50, (2, 7))
    both = {0: "batch", 1: "length"}
    yield "bert", Bert(), (tokens, torch.ones(2, 7)), {"tokens": both, "mask": both}
    yield "gpt", Gpt(), (tokens,), {"tokens": both}
    yield "cnn", Cnn(), (torch.randn(2, 3, 16, 16),), {"image": {0: "batch"}}
    yield "llama", Llama(), (torch.randn(2, 7, WIDTH),), {"x": both}


def torchscript(into: Path) -> None:
    import torch

    for name, model, inputs, dynamic in _torch_models():
        torch.onnx.export(
            model.eval(),
            inputs,
            str(into / f"torchscript_{name}.onnx"),
            input_names=list(dynamic),
            output_names=["result"],
            dynamic_axes=dynamic,
            opset_version=17,
            dynamo=False,
            do_constant_folding=False,
        )


def dynamo(into: Path) -> None:
    import torch

    for name, model, inputs, dynamic in _torch_models():
        shapes = tuple(dict.fromkeys(dims, torch.export.Dim.DYNAMIC) for dims in dynamic.values())
        path = into / f"dynamo_{name}.onnx"
        torch.onnx.export(
            model.eval(),
            inputs,
            str(path),
            input_names=list(dynamic),
            output_names=["result"],
            dynamic_shapes=shapes,
            opset_version=18,
            dynamo=True,
            optimize=False,
            external_data=False,
        )
        forget_places(path)


def forget_places(path: Path) -> None:
    """Drop the stack traces that tell where on this machine each node was written."""
    import onnx

    model = onnx.load(path)
    for node in model.graph.node:
        kept = [p for p in node.metadata_props if p.key != "pkg.torch.onnx.stack_trace"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(model, path)


def tf2onnx(into: Path) -> None:
    import keras
    import tensorflow as tf
    import tf2onnx as exporter

    keras.utils.set_random_seed(0)

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1.0 + tf.math.erf(x / math.sqrt(2.0)))  # keras's own has no operator

    image = keras.Input((12, 12, 3), name="image")
    x = keras.layers.Conv2D(8, 3, padding="same", use_bias=False)(image)
    x = keras.layers.ReLU()(keras.layers.BatchNormalization()(x))
    x = keras.layers.Conv2D(8, 3, dilation_rate=2, padding="same", activation=gelu)(x)
    x = keras.layers.LeakyReLU()(keras.layers.DepthwiseConv2D(3, strides=2)(x))
    x = keras.layers.GlobalAveragePooling2D()(x)
    cnn = keras.Model(image, keras.layers.Dense(5, activation="softmax")(x))

    row = keras.Input((None, WIDTH), name="row")
    norm = keras.layers.LayerNormalization()(row)
    mixed = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(norm, norm)
    y = row + mixed
    z = keras.layers.Dense(4 * WIDTH, activation=gelu)(keras.layers.LayerNormalization()(y))
    block = keras.Model(row, y + keras.layers.Dense(WIDTH)(z))
    for name, model, spec in (
        ("cnn", cnn, tf.TensorSpec((None, 12, 12, 3), tf.float32, "image")),
        ("block", block, tf.TensorSpec((None, None, WIDTH), tf.float32, "row")),
    ):
        function = tf.function(lambda value, model=model: model(value), input_signature=[spec])
        exporter.convert.from_function(
            function, [spec], opset=17, output_path=str(into / f"tf2onnx_{name}.onnx")
        )


def jax2onnx(into: Path) -> None:
    import jax
    import jax.numpy as jnp
    import jax2onnx as exporter
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.first, self.second = (
                nnx.LayerNorm(WIDTH, rngs=rngs),
                nnx.LayerNorm(WIDTH, rngs=rngs),
            )
            self.qkv = nnx.Linear(WIDTH, 3 * WIDTH, rngs=rngs)
            self.out = nnx.Linear(WIDTH, WIDTH, rngs=rngs)
            self.up = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
            self.down = nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)

        def __call__(self, x: jax.Array) -> jax.Array:
            batch, length, _ = x.shape
            parts = jnp.split(self.qkv(self.first(x)), 3, axis=-1)
            q, k, v = (p.reshape(batch, length, HEADS, WIDTH // HEADS) for p in parts)
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(WIDTH // HEADS)
            mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)
            x = x + self.out(mixed.reshape(batch, length, WIDTH))
            return x + self.down(jax.nn.gelu(self.up(self.second(x)), approximate=False))

    model = exporter.to_onnx(Block(nnx.Rngs(0)), inputs=[("B", 7, WIDTH)])
    (into / "jax2onnx_block.onnx").write_bytes(model.SerializeToString())


EXPORTERS: dict[str, Callable[[Path], None]] = {
    "torchscript": torchscript,
    "dynamo": dynamo,
    "tf2onnx": tf2onnx,
    "jax2onnx": jax2onnx,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(EXPORTERS))
    parser.add_argument("--into", type=Path, default=Path("tests/models"))
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    for name in options.only.split(","):
        EXPORTERS[name](options.into)
        print(f"{name}: written to {options.into}")


if __name__ == "__main__":
    main()
