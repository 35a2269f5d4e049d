"""Whole generation loops are traced, optimized and right at prompts of several lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import decode_loops as loops
import jax
import numpy as np
import pytest

import smelt

PROMPT = ("i32[B,P]",)
SHORT = {"constraints": ("P <= 12",)}
DRAWN = (*PROMPT, "key[]", "f32[]")

Case = tuple[Callable[..., Any], tuple[str, ...]]


def cases() -> dict[str, Case]:
    found: dict[str, Case] = {"encoder and decoder": (loops.translated, PROMPT)}
    for model in (loops.gpt, loops.llama):
        for make in (loops.greedy_while, loops.greedy_fori, loops.beam_search):
            found[f"{model.__name__} {make.__name__}"] = make(model), PROMPT
        for make in (loops.sampled_scan, loops.nucleus_scan):
            found[f"{model.__name__} {make.__name__}"] = make(model), DRAWN
        found[f"{model.__name__} fixed cache"] = loops.greedy_while(model, 12), PROMPT
    return found


CASES = cases()
QUICK = ("encoder and decoder", "gpt fixed cache")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_generation(name: str) -> None:
    fn, specs = CASES[name]
    artifact = smelt.compile(fn, *specs, tracing=SHORT)
    for batch, length in ((1, 3), (3, 5)):
        rng = np.random.default_rng(length)
        prompt = rng.integers(1, loops.VOCABULARY, (batch, length)).astype(np.int32)
        given = (prompt, np.asarray([7, length], np.uint32), np.float32(0.7))[: len(specs)]
        typed = [jax.random.wrap_key_data(x) if x.dtype == np.uint32 else x for x in given]
        expected = jax.tree.leaves(jax.jit(fn)(*map(jax.device_put, typed)))
        for ours, theirs in zip(artifact(*given), map(np.asarray, expected), strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
