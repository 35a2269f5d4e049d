"""Functions are traced to the models that ``traced.txt`` records.

A row, ``f32[B,3]: lambda x: jnp.sort(x)``, is followed by its entry: the types of the results, the
operators, and a digest of all nodes with the types of their values, or the error.
``PYTHONPATH=src:tests python tests/frontends/jax/test_traced.py`` writes the entries again.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx
from jax import lax, nn
from recorded import facts, made_or_refused, rows, write

from smelt.frontends.jax import trace

TABLE = Path(__file__).with_name("traced.txt")
NAMES: dict[str, Any] = {
    "jax": jax,
    "jnp": jnp,
    "lax": lax,
    "nn": nn,
    "np": np,
    "jsp": jax.scipy,
    "partial": partial,
    "nnx": nnx,
    "linen": linen,
    "eqx": eqx,
    "rngs": lambda: nnx.Rngs(0),
    "key": lambda: jax.random.key(0),
}


def entry(row: str) -> str:
    """Return the entry of a row."""
    specs, _, function = row.partition(": ")
    traced = partial(trace, eval(function, dict(NAMES)), *specs.split("; "))
    return made_or_refused(lambda: facts(traced()))


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_the_model_is_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/frontends/jax/test_traced.py"


if __name__ == "__main__":
    write(TABLE, entry)
