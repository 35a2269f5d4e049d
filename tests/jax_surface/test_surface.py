"""A sample of the sweep over JAX's public surface in every run; the whole of it on demand."""

from __future__ import annotations

import pytest
from jax_surface.surface import entries
from jax_surface.sweep import verdicts

EVERY = 64
"""One callable of so many is in the sample."""

ENTRIES = list(entries())
CASES = [
    pytest.param(entry, marks=[] if index % EVERY == 0 else [pytest.mark.slow], id=str(entry))
    for index, entry in enumerate(ENTRIES)
]


@pytest.mark.parametrize("entry", CASES)
@pytest.mark.filterwarnings("ignore")
def test_converts_and_computes_what_jax_computes(entry) -> None:
    for verdict in verdicts(entry, wide=False, most=2):
        assert verdict.kind in ("right", "refused"), str(verdict)
