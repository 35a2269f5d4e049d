"""The meaning of each input and output of a decoder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

Kind = Literal["grown", "replaced"]

_PAST_WORDS = re.compile(r"past|present|key_values|cache|updated|output|input|next|new|out|in")
"""What the names of a past input and of its output differ by."""


@dataclass(frozen=True)
class Cache:
    """A past input, and the output with its value for the next step.

    ``grown``: the output has the rows of this step after those of the past, along ``axis``.
    ``replaced``: the output has the input's shape, such as the state of a recurrent layer.
    """

    input: str
    output: str
    kind: Kind
    axis: int = 0


@dataclass(frozen=True)
class Ports:
    """The names of the inputs and outputs of a decoder; None for those that it lacks.

    ``tokens``: int[B, S]. ``mask``: numbers, [B, P + S], 0 for padding. ``positions``: int[B, S];
    with a ``position_rank`` of 1, int[S]; of 0, the position of the first token. ``logits``:
    float[B, S, V]. ``token_types`` are inputs of zeros, ``row_counts`` inputs with the number of
    rows of logits; both are names with ranks.
    """

    tokens: str
    logits: str
    mask: str | None
    positions: str | None
    position_rank: int
    caches: tuple[Cache, ...]
    token_types: Mapping[str, int]
    row_counts: Mapping[str, int]

    def fixed_arrays(self, tokens: np.ndarray, rows: int) -> dict[str, np.ndarray]:
        """Return the inputs whose values do not depend on a state: token types 0, and the number of
        ``rows`` of logits."""
        types = {n: np.zeros(tokens.shape[:rank], int) for n, rank in self.token_types.items()}
        counts = {n: np.full((1,) * rank, rows) for n, rank in self.row_counts.items()}
        return types | counts


def name_key(name: str) -> str:
    """Return what the names of a past input and of its output have in common.

    ``past_key_values.0.key`` and ``present.0.key`` both give ``0key``.
    """
    return re.sub(r"[^a-z0-9]+", "", _PAST_WORDS.sub("", name.lower()))
