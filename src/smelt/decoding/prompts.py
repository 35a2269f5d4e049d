"""Prompts: the tokens of one sequence or of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smelt.decoding.state import Array
from smelt.errors import UsageError

PADDING = -1
"""The token before a shorter prompt, and after the end of a sequence."""

Ids = Sequence[int] | Sequence[Sequence[int]] | Array


def prompts_of(ids: Ids) -> tuple[list[Array], bool]:
    """Return the prompts as int64[S] each, and whether ``ids`` is one prompt.

    Raises UsageError E803 for an empty prompt, and for elements that are no tokens.
    """
    is_one = len(ids) > 0 and np.ndim(ids[0]) == 0
    try:
        rows = [np.asarray(row) for row in ([ids] if is_one else ids)]
    except ValueError:
        rows = []
    if not rows or not all(row.ndim == 1 and row.size for row in rows):
        raise bad_prompt("the prompt has no tokens", "a prompt has at least one token")
    for row in rows:
        if row.dtype.kind not in "iu":
            raise bad_prompt(f"the prompt has {row.dtype}", "tokens are integers")
        if row.min() < 0:
            raise bad_prompt(f"the prompt has the token {row.min()}", "tokens are 0 or more")
    return [row.astype(np.int64) for row in rows], is_one


def bad_prompt(what: str, why: str) -> UsageError:
    """Return E803 for a prompt that cannot be read."""
    return UsageError("E803", what, why=why, fix="smelt.generate(model, [12, 7, 345])")


def padded(prompts: list[Array]) -> Array:
    """Return int64[B, S], the prompts with ``PADDING`` before the shorter ones."""
    width = max(map(len, prompts))
    rows = [np.pad(row, (width - len(row), 0), constant_values=PADDING) for row in prompts]
    return np.stack(rows)
