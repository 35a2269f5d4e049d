"""Whole decode loops, written out: prompts of any length, caches that slide, beams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from wild.agreement import Case, agrees

WORDS, WIDTH, WINDOW, STEPS = 11, 8, 4, 6
TABLE, QUERY, KEY, VALUE = (
    jax.random.normal(key, (rows, WIDTH)) / 2
    for key, rows in zip(jax.random.split(jax.random.key(0), 4), (WORDS, *[WIDTH] * 3), strict=True)
)


def _attended(q: Any, k: Any, v: Any, seen: Any) -> Any:
    scores = jnp.where(seen, q @ k.T / WIDTH**0.5, -jnp.inf)
    return jax.nn.softmax(scores, -1) @ v


def _nucleus(key: Any, logits: Any) -> Any:
    """A word of the most likely ones that make up nine tenths."""
    order = jnp.argsort(-logits)
    likely = jax.nn.softmax(logits[order] / 0.8)
    kept = jnp.where(jnp.cumsum(likely) - likely < 0.9, jnp.log(likely), -jnp.inf)
    return order[jax.random.categorical(key, kept)]


def _sliding(flax: Any) -> Callable[..., Any]:
    """A cache of the last four places, which those of a longer prompt overwrite in turn."""

    def decode(x: Any) -> Any:
        words = TABLE[jnp.argmax(x, -1)]
        places = jnp.arange(words.shape[0])
        apart = places[:, None] - places
        seen = (apart >= 0) & (apart < WINDOW)
        last = (words + _attended(words @ QUERY, words @ KEY, words @ VALUE, seen))[-1]
        # The row behind the window takes what is too old.
        row = jnp.where(places >= words.shape[0] - WINDOW, places % WINDOW, WINDOW)
        empty = jnp.zeros((WINDOW + 1, WIDTH))
        keys, values = (empty.at[row].set(words @ w)[:WINDOW] for w in (KEY, VALUE))

        def step(state: Any, key: Any) -> Any:
            last, keys, values, at = state
            word = _nucleus(key, last @ TABLE.T)
            new = TABLE[word]
            keys = lax.dynamic_update_slice(keys, (new @ KEY)[None], (at % WINDOW, 0))
            values = lax.dynamic_update_slice(values, (new @ VALUE)[None], (at % WINDOW, 0))
            held = at - (at - jnp.arange(WINDOW)) % WINDOW >= 0
            last = new + _attended(new @ QUERY, keys, values, held)
            return (last, keys, values, at + 1), word

        start = last, keys, values, jnp.int32(words.shape[0])
        return lax.scan(step, start, jax.random.split(jax.random.key(1), STEPS))[1]

    return decode


def _beam(flax: Any) -> Callable[..., Any]:
    """Three beams over what an encoder read; all stop once each has said word 0."""
    beams = 3

    def decode(x: Any) -> Any:
        read = TABLE[jnp.argmax(x, -1)]
        read += _attended(read @ QUERY, read @ KEY, read @ VALUE, True)

        def step(state: Any) -> Any:
            at, words, scores, done = state
            now = TABLE[words[:, at]]
            logits = (now + _attended(now @ QUERY, read @ KEY, read @ VALUE, True)) @ TABLE.T
            told = jnp.where(jnp.arange(WORDS) == 0, 0.0, -jnp.inf)
            likely = jnp.where(done[:, None], told, jax.nn.log_softmax(logits))
            scores, best = lax.top_k((scores[:, None] + likely).reshape(-1), beams)
            parent, word = best // WORDS, best % WORDS
            words = words[parent].at[:, at + 1].set(word)
            return at + 1, words, scores, done[parent] | (word == 0)

        words = jnp.ones((beams, STEPS + 1), jnp.int32)
        scores = jnp.where(jnp.arange(beams) == 0, 0.0, -1e9)
        start = jnp.int32(0), words, scores, jnp.zeros(beams, bool)
        at, words, scores, _ = lax.while_loop(
            lambda state: (state[0] < STEPS) & ~state[3].all(), step, start
        )
        return words, scores / at

    return decode


CASES = {
    "sliding window, nucleus": Case("flax", _sliding, (("N", WORDS),)),
    "encoder and beams": Case("flax", _beam, (("N", WORDS),)),
}


@pytest.mark.parametrize("name", CASES)
def test_decode_loops_are_right_at_two_lengths(name: str) -> None:
    agrees(CASES[name])
