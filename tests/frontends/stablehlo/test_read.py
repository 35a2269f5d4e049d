"""Exported functions become the models that ``read.txt`` records.

A row, ``f32[B,3]: lambda x: jnp.sort(x)``, is exported by ``jax.export``. Its entry has the types
of the results, the operators, and a digest of all nodes with the types of their values, or the
error. ``PYTHONPATH=src:tests python tests/frontends/stablehlo/test_read.py`` writes the entries
again.
"""

from __future__ import annotations

import re
from pathlib import Path

import jax
import numpy as np
import pytest
from frontends.jax.test_traced import NAMES
from jax import export
from recorded import facts, made_or_refused, rows, write

import smelt

TABLE = Path(__file__).with_name("read.txt")
KINDS = {"f": "float", "i": "int", "u": "uint", "c": "complex", "bf": "bfloat", "b": "bool"}


def entry(row: str) -> str:
    """Return the entry of a row."""
    specs, _, function = row.partition(": ")
    scope = export.SymbolicScope()
    structs = [_struct(spec, scope) for spec in specs.split("; ") if spec]
    exported = export.export(jax.jit(eval(function, dict(NAMES))))(*structs)
    return made_or_refused(lambda: facts(smelt.trace(exported)))


def _struct(spec: str, scope: export.SymbolicScope) -> jax.ShapeDtypeStruct:
    """Return the type that ``spec`` writes, such as ``f32[B,3]``."""
    found = re.fullmatch(r"([a-z]+)(\d*)\[(.*)\]", spec)
    assert found, spec
    kind, bits, dims = found.groups()
    dtype = np.dtype(f"{KINDS[kind]}{'' if kind == 'b' else bits}")
    return jax.ShapeDtypeStruct(export.symbolic_shape(dims, scope=scope), dtype)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_the_model_is_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: tests/frontends/stablehlo/test_read.py"


if __name__ == "__main__":
    write(TABLE, entry)
