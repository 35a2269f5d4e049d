"""Train the classifier of digits of this page and write ``digits.onnx``; takes a minute.

    pip install scikit-learn
    python -m examples.browser.train

The 1,797 images of 8x8 pixels are those of scikit-learn (UCI "Optical Recognition of Handwritten
Digits"). A fifth is held out; the script prints the share of it that the model gets right.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from sklearn.datasets import load_digits

import smelt

STEPS, BATCH, RATE = 6000, 128, 3e-3
Weights = dict[str, jax.Array]


def first_weights(key: jax.Array) -> Weights:
    """Return random weights: two convolutions and a dense layer."""
    keys = jax.random.split(key, 3)
    shapes = {"conv1": (12, 1, 3, 3), "conv2": (24, 12, 3, 3), "dense": (24 * 4, 10)}
    weights = {
        name: jax.random.normal(k, shape) / np.sqrt(np.prod(shape[1:]) if len(shape) > 2 else 96)
        for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    return weights | {"bias1": jnp.zeros(12), "bias2": jnp.zeros(24), "bias3": jnp.zeros(10)}


def logits(weights: Weights, image: jax.Array) -> jax.Array:
    """Return the logits ``f32[B,10]`` of images ``f32[B,1,8,8]`` from 0 to 1."""
    x = image
    for n in ("1", "2"):
        x = lax.conv_general_dilated(x, weights["conv" + n], (1, 1), "SAME")
        x = jax.nn.relu(x + weights["bias" + n][:, None, None])
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return x.reshape(x.shape[0], -1) @ weights["dense"] + weights["bias3"]


def loss(weights: Weights, image: jax.Array, label: jax.Array) -> jax.Array:
    """Return the mean cross entropy."""
    chances = jax.nn.log_softmax(logits(weights, image))
    return -jnp.take_along_axis(chances, label[:, None], 1).mean()


@partial(jax.jit, donate_argnums=(0, 1))
def step(weights: Weights, moments: tuple[Weights, Weights], n: int, image, label):
    """Return weights and moments after one step of Adam."""
    slope = jax.grad(loss)(weights, image, label)
    rate = RATE * (1 - n / STEPS)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], slope)
    second = jax.tree.map(lambda m, g: 0.999 * m + 0.001 * g * g, moments[1], slope)
    scale = rate * jnp.sqrt(1 - 0.999 ** (n + 1)) / (1 - 0.9 ** (n + 1))
    moved = jax.tree.map(
        lambda w, m, v: w - scale * m / (jnp.sqrt(v) + 1e-8), weights, first, second
    )
    return moved, (first, second)


def varied(images: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return images that are wider or narrower, moved, slanted, darker or lighter, with noise."""
    n, place = len(images), np.arange(8)
    width, shift = random.uniform(0.6, 1.2, (n, 1, 1, 1)), random.uniform(-1, 1, (n, 1, 1, 1))
    slant = random.uniform(-0.25, 0.25, (n, 1, 1, 1)) * (place[:, None, None] - 3.5)
    read = (place[:, None] - 3.5 - shift - slant) / width + 3.5
    weights = np.maximum(0, 1 - np.abs(read - place))  # of each read pixel, for each written one
    moved = np.einsum("nyxr,ncyr->ncyx", weights, images)
    gain = random.uniform(0.7, 1.5, (n, 1, 1, 1))
    noise = random.normal(0, 0.03, images.shape)
    return np.clip(moved * gain + noise, 0, 1).astype(np.float32)


def main() -> None:
    """Train, print the accuracy, and write the model."""
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    random = np.random.default_rng(0)
    order = random.permutation(len(images))
    held, rest = order[:360], order[360:]
    weights = first_weights(jax.random.key(0))
    moments = (jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights))
    for n in range(STEPS):
        chosen = random.choice(rest, BATCH)
        batch = varied(images[chosen], random)
        weights, moments = step(weights, moments, n, batch, digits.target[chosen])
    right = jnp.argmax(logits(weights, images[held]), 1) == digits.target[held]
    print(f"{float(right.mean()):.1%} of {len(held)} held-out images are right")
    net = lambda image: jax.nn.softmax(logits(weights, image))  # noqa: E731
    model = smelt.trace(net, "f32[1,1,8,8]", input_names=["image"], output_names=["chances"])
    smelt.save(smelt.optimize(model), Path(__file__).with_name("digits.onnx"))


if __name__ == "__main__":
    main()
