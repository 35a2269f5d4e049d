"""Choose the next token from logits.

The order of the filters is that of Hugging Face's transformers: repetition penalty, temperature,
top-k, top-p, min-p.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from smelt.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen; raises UsageError E802 for values that are not allowed.

    ``temperature`` 0 takes the most likely token. ``top_k`` keeps the k most likely tokens, 0 all.
    ``top_p`` keeps the fewest tokens whose probabilities sum to it. ``min_p`` drops tokens less
    likely than this part of the most likely one. ``repetition_penalty`` divides the positive logits
    of earlier tokens, and multiplies the negative ones. Equal ``seed`` means equal tokens.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        """Raise UsageError E802 for a value that is not allowed."""
        allowed = {
            "temperature": (self.temperature >= 0, "0 or more"),
            "top_k": (self.top_k >= 0, "0 or more"),
            "top_p": (0 < self.top_p <= 1, "above 0 and at most 1"),
            "min_p": (0 <= self.min_p <= 1, "from 0 to 1"),
            "repetition_penalty": (self.repetition_penalty > 0, "above 0"),
        }
        for name, (is_allowed, range_text) in allowed.items():
            if not is_allowed:
                raise UsageError(
                    "E802",
                    f"{name} is {getattr(self, name)}",
                    why=f"{name} is {range_text}",
                    fix="smelt.generate(model, ids, temperature=0.8, top_k=40, top_p=0.95, seed=0)",
                )


def sampling_of(values: Mapping[str, Any]) -> Sampling:
    """Return the Sampling of ``values``; raises UsageError E802 for a name that it lacks."""
    known = [field.name for field in fields(Sampling)]
    for name in values:
        if name not in known:
            raise UsageError(
                "E802",
                f"there is no option {name!r}",
                why=f"the options of sampling are {', '.join(known)}",
                fix=did_you_mean(name, known, "leave it out"),
            )
    return Sampling(**values)


class Sampler:
    """Chooses a token for each sequence of a batch; ``seen`` are the tokens so far."""

    def __init__(self, sampling: Sampling) -> None:
        """Start the random numbers of ``sampling``."""
        self._sampling = sampling
        self._random = np.random.default_rng(sampling.seed)

    def choose(self, logits: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Return int64[B], the next tokens, from ``logits``, float[B, V], and ``seen``, int[B, N].

        Tokens of ``seen`` below 0 are padding.
        """
        chosen = self._sampling
        scores = logits.astype(np.float32)
        if chosen.repetition_penalty != 1:
            for row, tokens in zip(scores, seen, strict=True):
                known = np.unique(tokens[tokens >= 0])
                factor = chosen.repetition_penalty
                row[known] = np.where(row[known] > 0, row[known] / factor, row[known] * factor)
        if chosen.temperature == 0:
            return np.asarray(scores.argmax(axis=-1))
        return np.array([self._draw(row / chosen.temperature) for row in scores], np.int64)

    def _draw(self, scores: np.ndarray) -> int:
        """Return a token drawn by its probability among those that the filters keep."""
        chosen = self._sampling
        count = min(chosen.top_k, len(scores)) if chosen.top_k else len(scores)
        if count < len(scores):
            tokens = np.argpartition(-scores, count - 1)[:count]
        else:
            tokens = np.arange(len(scores))
        tokens = tokens[np.argsort(-scores[tokens], kind="stable")]
        weights = np.exp((scores[tokens] - scores[tokens[0]]).astype(np.float64))
        weights /= weights.sum()
        more_likely = np.cumsum(weights) - weights  # the probability of all tokens before each
        kept = (more_likely < chosen.top_p) & (weights >= chosen.min_p * weights[0])
        weights = np.where(kept, weights, 0)
        place = np.searchsorted(np.cumsum(weights), self._random.random() * weights.sum(), "right")
        # Rounding of the sums may place the draw behind the last token that is kept.
        return int(tokens[min(int(place), int(kept.nonzero()[0][-1]))])
