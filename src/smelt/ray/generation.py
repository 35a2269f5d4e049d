"""A decoder on the rows of batches: a column of prompts becomes a column of new tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from smelt.decoding.decoder import Decoder
from smelt.errors import UsageError, did_you_mean
from smelt.ray.rows import Columns

PROMPTS, TOKENS = "ids", "tokens"
"""The input and the output of a decoder; ``columns`` may map the former to another column."""


class Generation:
    """A decoder that generates tokens with ``options``, those of ``Decoder.generate``."""

    def __init__(
        self, decoder: Decoder, columns: Mapping[str, str], options: Mapping[str, Any]
    ) -> None:
        """Find the column of prompts; UsageError E697 for an input other than ``ids``."""
        for name in columns:
            if name != PROMPTS:
                raise UsageError(
                    "E697",
                    f"a decoder has no input {name!r}",
                    why=f"its prompts are the input {PROMPTS!r}",
                    fix=f"columns={{{PROMPTS!r}: {columns[name]!r}}}",
                )
        self._decoder, self._options = decoder, dict(options)
        self._column = columns.get(PROMPTS, PROMPTS)

    def __call__(self, batch: Columns, pad: bool) -> dict[str, np.ndarray]:
        """Return the new tokens of each row, int64[N] of any length, as ``tokens``.

        All rows are generated together. Raises UsageError E697 without the column of prompts, and
        what ``Decoder.generate`` raises.
        """
        del pad
        if self._column not in batch:
            raise UsageError(
                "E697",
                f"there is no column {self._column!r}",
                why=f"there are {', '.join(map(repr, batch)) or 'none'}",
                fix=did_you_mean(self._column, batch, f"columns={{{PROMPTS!r}: column}}"),
            )
        prompts: list[Any] = [np.asarray(row) for row in batch[self._column]]
        tokens = np.empty(len(prompts), object)
        if prompts:
            for row, new in enumerate(self._decoder.generate(prompts, **self._options)):
                tokens[row] = new
        return {TOKENS: tokens}
