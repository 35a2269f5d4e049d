"""What billions of abstract weights take, and what it takes to write hundreds of megabytes."""

from __future__ import annotations

import subprocess
import sys

import pytest

MB = 1 << 20

MODEL = """
import resource, sys, threading, time
import jax, jax.numpy as jnp, numpy as np, smelt, smelt.compiler, smelt.frontends.jax
from smelt.passes import registry

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def forward(p, tokens):
    x = p["embedding"][tokens]
    for layer in p["layers"]:
        q, k, v = (jnp.einsum("btd,dhk->bthk", x, layer[name]) for name in "qkv")
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + jnp.einsum("bthk,hkd->btd", y, layer["o"])
        x = x + (jax.nn.silu(x @ layer["gate"]) * (x @ layer["up"])) @ layer["down"]
    return x @ p["embedding"].T

def types(width, heads, depth, hidden, vocabulary, make):
    qkv, o = (width, heads, width // heads), (heads, width // heads, width)
    shapes = dict(q=qkv, k=qkv, v=qkv, o=o, gate=(width, hidden), up=(width, hidden), down=(hidden, width))
    layers = [{name: make(shape) for name, shape in shapes.items()} for _ in range(depth)]
    return {"embedding": make((vocabulary, width)), "layers": layers}
"""

ABSTRACT = """
p = types(4096, 32, 32, 11008, 32000, lambda shape: jax.ShapeDtypeStruct(shape, jnp.bfloat16))
before = peak()
model = smelt.optimize(smelt.trace(forward, p, "i32[B,T]", weights="p"))
print(peak() - before, sum(w.shape is not None for w in model.graph.initializers.values()))
"""

REAL = """
RANDOM = np.random.default_rng(0)
layers = int(sys.argv[2])
p = types(1024, 16, layers, 4096, 4000, lambda shape: RANDOM.random(shape, np.float32))
size = sum(leaf.nbytes for leaf in jax.tree.leaves(p)) // 2**20
before = peak()
model = smelt.trace(forward, p, "i32[B,T]", weights="p")
smelt.save(smelt.optimize(model), sys.argv[1], external_data=True)
print(peak() - before, size)
"""


def measured(code: str, *arguments: str) -> list[int]:
    """The two numbers that ``code`` prints: megabytes beyond what there was, and how many."""
    command = [sys.executable, "-c", MODEL + code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return [int(number) for number in done.stdout.split()[-2:]]


@pytest.mark.slow
def test_a_model_of_seven_billion_weights_converts_in_300_mb():
    grown, weights = measured(ABSTRACT)
    assert weights >= 7 * 32 + 1
    assert grown <= 300


@pytest.mark.slow
def test_saving_takes_no_more_than_the_weights_and_a_fixed_part(tmp_path):
    grown, size = measured(REAL, str(tmp_path / "m.onnx"), "5")
    assert size > 250
    assert grown <= size + 256
    assert (tmp_path / "m.onnx.data").stat().st_size >= size * MB
