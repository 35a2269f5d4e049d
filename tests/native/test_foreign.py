"""A package's own kernel for target c: an operator, its C text, and its test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from packages import installed

from smelt.conformance import check_kernel
from smelt.errors import Mismatch, UsageError
from smelt.native.kernels.foreign import CKernel
from smelt.operators.declare import Attribute, Operator, Result

X = np.array([[-2, -0.0, 3], [np.nan, np.inf, 1e-30]], np.float32)


def declared(name: str) -> Operator:
    return Operator(
        domain="vendor.kernels",
        name=name,
        inputs=("x", "y"),
        outputs=("z",),
        attributes=(Attribute("unused", ir.AttributeType.INT, 0),),
        infer=lambda inputs, attributes: (Result(inputs[0].dtype, inputs[0].shape),),  # type: ignore[union-attr]
        reference=lambda inputs, attributes: (inputs[0] * inputs[0] + inputs[1],),  # type: ignore[operator]
    )


EXAMPLES: Any = (((X, np.float32([1, 2, 3])), {}),)


def test_its_examples_are_held_against_the_reference() -> None:
    check_kernel(CKernel(declared("SquareAdd"), "{0} * {0} + {1}", examples=EXAMPLES))


def test_a_wrong_text_is_found() -> None:
    with pytest.raises(Mismatch) as caught:
        check_kernel(CKernel(declared("Wrong"), "{0} + {1}", examples=EXAMPLES))
    assert caught.value.code == "E705"


def test_a_kernel_has_a_test_and_one_text() -> None:
    with pytest.raises(UsageError, match="no example"):
        CKernel(declared("Untested"), "{0}")
    with pytest.raises(UsageError, match="either"):
        CKernel(declared("Empty"), examples=EXAMPLES)


PACKAGE = """
import numpy as np
from smelt.native.kernels.foreign import CKernel
from smelt.operators.declare import Operator, Result

cube = CKernel(
    Operator(
        domain="cubes", name="Cube", inputs=("x",), outputs=("y",),
        infer=lambda inputs, attributes: (Result(inputs[0].dtype, inputs[0].shape),),
        reference=lambda inputs, attributes: (inputs[0] ** 3,),
    ),
    "{0} * {0} * {0}",
    examples=(((np.arange(4, dtype=np.float32),), {}),),
)
"""
PROGRAM = """
import numpy as np, smelt
from smelt.ir import text
model = text.parse("g (float[3] x) => (float[3] y) { y = cubes.Cube(x) }")
print(smelt.compile(model, target="c")(np.float32([1, 2, 3]))[0].tolist())
"""


def test_a_package_adds_one_by_an_entry_point(tmp_path: Path) -> None:
    with installed(tmp_path, "cubes", PACKAGE, "[smelt.c.kernels]\ncube = cubes:cube\n"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={
                "PYTHONPATH": ":".join([str(tmp_path), *filter(None, sys.path)]),
                "PATH": "/usr/bin:/bin",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.stdout.strip() == "[1.0, 8.0, 27.0]", done.stderr
