"""Generation as users of language models write it: two small decoders, and loops around them.

A decoder takes tokens ``[B, T]``, caches of keys and values ``[B, S, heads, 4]`` and the position of
the first token, and gives logits ``[B, T, VOCABULARY]`` and the caches.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

VOCABULARY, WIDTH, HEADS, LAYERS, END = 17, 16, 4, 2, 3
_RNG = np.random.default_rng(0)


def _weight(*shape: int) -> Any:
    return jax.device_put((_RNG.standard_normal(shape) * 0.3).astype(np.float32))


def _layer(key_heads: int, wide: int) -> dict[str, Any]:
    keys = WIDTH // HEADS * key_heads
    shapes = {
        "q": (WIDTH, WIDTH),
        "k": (WIDTH, keys),
        "v": (WIDTH, keys),
        "o": (WIDTH, WIDTH),
        "gate": (WIDTH, wide),
        "up": (WIDTH, wide),
        "down": (wide, WIDTH),
    }
    return {name: _weight(*shape) for name, shape in shapes.items()}


EMBEDDING, POSITIONS = _weight(VOCABULARY, WIDTH), _weight(64, WIDTH)
GPT_LAYERS = [_layer(HEADS, 4 * WIDTH) for _ in range(LAYERS)]
LLAMA_LAYERS = [_layer(HEADS // 2, 2 * WIDTH) for _ in range(LAYERS)]


def _heads(x: Any) -> Any:
    return x.reshape(*x.shape[:-1], -1, WIDTH // HEADS)


def _norm(x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)


def _rms(x: Any) -> Any:
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def _rotated(x: Any, positions: Any) -> Any:
    rates = 1 / (10000 ** (jnp.arange(0, x.shape[-1], 2) / x.shape[-1]))
    angles = positions[..., None] * rates
    cos, sin = jnp.cos(angles)[..., None, :], jnp.sin(angles)[..., None, :]
    a, b = x[..., ::2], x[..., 1::2]
    return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)


def _attended(q: Any, k: Any, v: Any, position: Any) -> Any:
    k, v = (jnp.repeat(each, HEADS // each.shape[2], axis=2) for each in (k, v))
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / math.sqrt(q.shape[-1])
    seen = jnp.arange(k.shape[1])[None] <= position + jnp.arange(q.shape[1])[:, None]
    weights = jax.nn.softmax(jnp.where(seen, scores, jnp.finfo(scores.dtype).min), -1)
    return jnp.einsum("bhts,bshd->bthd", weights, v).reshape(*q.shape[:2], WIDTH)


def _updated(cache: Any, new: Any, position: Any) -> Any:
    return lax.dynamic_update_slice(cache, new, (0, position, 0, 0))


def gpt(tokens: Any, caches: Any, position: Any) -> tuple[Any, Any]:
    """Learned positions, layer norms, GELU, as many keys as queries."""
    x = EMBEDDING[tokens] + lax.dynamic_slice_in_dim(POSITIONS, position, tokens.shape[1])
    new = []
    for p, (k, v) in zip(GPT_LAYERS, caches, strict=True):
        h = _norm(x)
        k = _updated(k, _heads(h @ p["k"]), position)  # noqa: PLW2901
        v = _updated(v, _heads(h @ p["v"]), position)  # noqa: PLW2901
        new.append((k, v))
        x = x + _attended(_heads(h @ p["q"]), k, v, position) @ p["o"]
        x = x + jax.nn.gelu(_norm(x) @ p["up"]) @ p["down"]
    return _norm(x) @ EMBEDDING.T, new


def llama(tokens: Any, caches: Any, position: Any) -> tuple[Any, Any]:
    """Rotated positions, RMS norms, gated SiLU, two queries for each key."""
    x, new = EMBEDDING[tokens], []
    places = position + jnp.arange(tokens.shape[1])
    for p, (k, v) in zip(LLAMA_LAYERS, caches, strict=True):
        h = _rms(x)
        k = _updated(k, _rotated(_heads(h @ p["k"]), places), position)  # noqa: PLW2901
        v = _updated(v, _heads(h @ p["v"]), position)  # noqa: PLW2901
        new.append((k, v))
        x = x + _attended(_rotated(_heads(h @ p["q"]), places), k, v, position) @ p["o"]
        h = _rms(x)
        x = x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]
    return _rms(x) @ EMBEDDING.T, new


KEY_HEADS = {gpt: HEADS, llama: HEADS // 2}


def _started(model: Any, prompt: Any, size: Any) -> tuple[Any, Any]:
    """The logits after ``prompt``, and caches for ``size`` tokens."""
    empty = jnp.zeros((prompt.shape[0], size, KEY_HEADS[model], WIDTH // HEADS))
    logits, caches = model(prompt, [(empty, empty)] * LAYERS, 0)
    return logits[:, -1], caches


def greedy_while(model: Any, size: int | None = None) -> Any:
    """Until every row has ended; a cache of ``size``, or of five more than the prompt."""

    def generate(prompt: Any) -> Any:
        batch, start = prompt.shape
        end = size or start + 5
        logits, caches = _started(model, prompt, end)
        tokens = jnp.concatenate([prompt, jnp.zeros((batch, end - start), prompt.dtype)], 1)

        def step(state: Any) -> Any:
            i, tokens, logits, caches, done = state
            token = jnp.argmax(logits, -1).astype(tokens.dtype)
            tokens = lax.dynamic_update_slice(tokens, jnp.where(done, 0, token)[:, None], (0, i))
            logits, caches = model(token[:, None], caches, i)
            return i + 1, tokens, logits[:, 0], caches, done | (token == END)

        state = (start, tokens, logits, caches, jnp.zeros(batch, bool))
        return lax.while_loop(lambda s: (s[0] < end) & ~jnp.all(s[4]), step, state)[1]

    return generate


def greedy_fori(model: Any, count: int = 4) -> Any:
    """A fixed number of tokens, set in place."""

    def generate(prompt: Any) -> Any:
        start = prompt.shape[1]
        logits, caches = _started(model, prompt, start + count)

        def step(i: Any, state: Any) -> Any:
            tokens, logits, caches = state
            token = jnp.argmax(logits, -1).astype(tokens.dtype)
            tokens = tokens.at[:, start + i].set(token)
            logits, caches = model(token[:, None], caches, start + i)
            return tokens, logits[:, 0], caches

        tokens = jnp.pad(prompt, ((0, 0), (0, count)))
        return lax.fori_loop(0, count, step, (tokens, logits, caches))[0]

    return generate


def _top_k(key: Any, logits: Any) -> Any:
    best, places = lax.top_k(logits, 4)
    drawn = jax.random.categorical(key, best)
    return jnp.take_along_axis(places, drawn[:, None], 1)[:, 0]


def _top_p(key: Any, logits: Any) -> Any:
    ordered = jnp.sort(logits, -1)[:, ::-1]
    mass = jnp.cumsum(jax.nn.softmax(ordered, -1), -1)
    least = jnp.take_along_axis(ordered, jnp.sum(mass < 0.8, -1, keepdims=True), -1)
    return jax.random.categorical(key, jnp.where(logits < least, -jnp.inf, logits))


def sampled_scan(model: Any, draw: Any = _top_k, count: int = 4) -> Any:
    """Drawn with a temperature from the likeliest tokens."""

    def generate(prompt: Any, key: Any, temperature: Any) -> Any:
        start = prompt.shape[1]
        logits, caches = _started(model, prompt, start + count)

        def step(state: Any, i: Any) -> Any:
            logits, caches, key = state
            key, own = jax.random.split(key)
            token = draw(own, logits / temperature)
            logits, caches = model(token[:, None], caches, start + i)
            return (logits[:, 0], caches, key), token

        return lax.scan(step, (logits, caches, key), jnp.arange(count))[1].T

    return generate


def nucleus_scan(model: Any) -> Any:
    """Drawn from the smallest set of tokens that has most of the mass."""
    return sampled_scan(model, _top_p)


def beam_search(model: Any, count: int = 4, beams: int = 3) -> Any:
    """The best ``beams`` continuations, with caches that follow them."""

    def generate(prompt: Any) -> Any:
        batch, start = prompt.shape
        logits, caches = _started(model, prompt, start + count)
        scores, first = lax.top_k(jax.nn.log_softmax(logits), beams)
        caches = jax.tree.map(lambda cache: jnp.repeat(cache, beams, axis=0), caches)

        def step(i: Any, state: Any) -> Any:
            tokens, scores, caches = state
            last = lax.dynamic_index_in_dim(tokens, i, 2, keepdims=False)
            logits, caches = model(last.reshape(batch * beams, 1), caches, start + i)
            further = jax.nn.log_softmax(logits[:, 0]).reshape(batch, beams, VOCABULARY)
            total = (scores[:, :, None] + further).reshape(batch, beams * VOCABULARY)
            scores, places = lax.top_k(total, beams)
            source, token = places // VOCABULARY, places % VOCABULARY
            tokens = jnp.take_along_axis(tokens, source[:, :, None], 1)
            tokens = lax.dynamic_update_slice(tokens, token[:, :, None], (0, 0, i + 1))
            rows = (jnp.arange(batch)[:, None] * beams + source).reshape(-1)
            return tokens, scores, jax.tree.map(lambda cache: cache[rows], caches)

        tokens = jnp.zeros((batch, beams, count), jnp.int32).at[:, :, 0].set(first)
        return lax.fori_loop(0, count - 1, step, (tokens, scores, caches))[:2]

    return generate


CROSS = {name: _weight(WIDTH, WIDTH) for name in ("q", "k", "v", "xq", "xk", "xv")}


def translated(source: Any) -> Any:
    """An encoder, and a decoder that looks at what it gives in each of four steps."""
    x = EMBEDDING[source]
    q, k, v = (x @ CROSS[name] for name in "qkv")
    x = x + jax.nn.softmax(q @ jnp.swapaxes(k, 1, 2) / 4, -1) @ v
    keys, values = x @ CROSS["xk"], x @ CROSS["xv"]

    def step(state: Any, _: Any) -> Any:
        token, hidden = state
        x = EMBEDDING[token] + hidden
        scores = jnp.einsum("bd,btd->bt", x @ CROSS["xq"], keys)
        weights = jax.nn.softmax(jnp.where(source != 0, scores, -1e9), -1)
        x = jnp.tanh(x + jnp.einsum("bt,btd->bd", weights, values))
        logits = x @ EMBEDDING.T
        return (jnp.argmax(logits, -1).astype(source.dtype), x), logits

    batch = source.shape[0]
    start = jnp.ones(batch, source.dtype), jnp.zeros((batch, WIDTH))
    return jnp.swapaxes(lax.scan(step, start, None, length=4)[1], 0, 1)
