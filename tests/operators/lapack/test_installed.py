"""Operators of LAPACK reach smelt by an entry point, as those of any package do."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import smelt
from smelt import operators
from smelt.distribution import NAME
from smelt.ir import text
from smelt.ir.scope import CHECKS
from smelt.operators.registry import OPERATORS

NAMES = ("ComplexEig", "ComplexSchur", "Eig", "Schur")


@pytest.mark.parametrize("name", NAMES)
def test_the_entry_point_brings_it(name: str) -> None:
    assert OPERATORS.owner(("smelt", name)).package.startswith(f"{NAME} ")


def test_all_operators_of_ours_have_a_body() -> None:
    """There are none, but for checks, which end a run: ONNX has no operator that could be a body of
    theirs."""
    ours = [op for op in operators.all_operators() if op.domain == "smelt" and op.body is None]
    names = (operator.name for operator in ours if ("smelt", operator.name) not in CHECKS)
    assert tuple(names) == ()


def test_they_are_imported_when_an_operator_is_looked_up() -> None:
    code = (
        "import sys, smelt.operators\n"
        "assert 'smelt.operators.lapack' not in sys.modules\n"
        "assert smelt.operators.find('smelt', 'Schur') is not None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_host_runs_them() -> None:
    model = text.parse("g (float[N,4,4] a) => (t, v) { t, v = smelt.Schur(a) }")
    a = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32)
    t, v = smelt.compile(model, target="host")(a)
    np.testing.assert_allclose(v @ t @ v.transpose(0, 2, 1), a, atol=1e-5)
