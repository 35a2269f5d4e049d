"""A package's own kernel for target c: an operator, its C text, and its test."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from packages import installed

from smelt.check.plugins import plugins
from smelt.conformance import check_kernel
from smelt.errors import Mismatch, SmeltError, UsageError
from smelt.native.kernels.foreign import CKernel
from smelt.native.kernels.kernel import KERNELS, Kernel, KernelContext
from smelt.operators.declare import Attribute, Operator, Result

X = np.array([[-2, -0.0, 3], [np.nan, np.inf, 1e-30]], np.float32)


def declared(name: str) -> Operator:
    return Operator(
        domain="vendor.kernels",
        name=name,
        inputs=("x", "y"),
        outputs=("z",),
        attributes=(
            Attribute("scale", ir.AttributeType.FLOAT, 1.0),
            Attribute("shift", ir.AttributeType.INT, 0),
        ),
        infer=lambda inputs, attributes: (Result(inputs[0].dtype, inputs[0].shape),),  # type: ignore[union-attr]
        reference=reference,
    )


def reference(inputs: Any, attributes: Any) -> tuple[np.ndarray, ...]:
    scale = np.float32(attributes["scale"])
    return (inputs[0] * inputs[0] * scale + inputs[1] + np.float32(attributes["shift"]),)


EXAMPLES: Any = (((X, np.float32([1, 2, 3])), {}),)


def test_its_examples_are_held_against_the_reference() -> None:
    check_kernel(CKernel(declared("SquareAdd"), "{0} * {0} + {1}", examples=EXAMPLES))


def test_a_text_names_attributes_that_are_numbers() -> None:
    given: Any = ((EXAMPLES[0][0], {"scale": -2.5, "shift": -7}),)
    whole = "{0} * {0} * {scale} + {1} + {shift}"
    check_kernel(CKernel(declared("Scaled"), whole, examples=EXAMPLES + given))


@pytest.mark.parametrize("attributes", [{"scale": 2.0}, {"shift": 1}])
def test_an_attribute_that_a_text_leaves_out_has_its_default(attributes: Any) -> None:
    examples: Any = ((EXAMPLES[0][0], attributes),)
    with pytest.raises(SmeltError, match="right for") as caught:
        check_kernel(CKernel(declared("Silent"), "{0} * {0} + {1}", examples=examples))
    assert caught.value.code == "E201"


@pytest.mark.parametrize("wrong", ["{0} + {2}", "{0} + {beta}", "{0", "{} + {1}"])
def test_a_text_that_names_nothing_is_refused_where_it_stands(wrong: str) -> None:
    with pytest.raises(UsageError) as caught:
        CKernel(declared("Misnamed"), wrong, examples=EXAMPLES)
    assert caught.value.code == "E647"


def test_a_text_is_for_one_result_of_the_broadcast_size() -> None:
    two = replace(declared("Two"), outputs=("y", "z"))
    with pytest.raises(UsageError, match="one result, and there are 2"):
        CKernel(two, "{0}", examples=EXAMPLES)
    shorter = replace(
        declared("Shorter"),
        infer=lambda inputs, attributes: (Result(inputs[0].dtype, ir.Shape([2])),),  # type: ignore[union-attr]
        reference=lambda inputs, attributes: (inputs[0][:, 0],),  # type: ignore[index]
    )
    with pytest.raises(SmeltError, match="as large as the inputs"):
        check_kernel(CKernel(shorter, "{0} + {1}", examples=EXAMPLES))


def test_a_text_is_for_all_inputs() -> None:
    optional = replace(
        declared("Optional"), inputs=("x", "y?"), reference=lambda inputs, attributes: inputs[:1]
    )
    with pytest.raises(SmeltError, match="one is absent"):
        check_kernel(CKernel(optional, "{0}", examples=(((X,), {}),)))


def test_a_kernel_that_raises_is_named() -> None:
    def emit(cx: KernelContext) -> None:
        raise LookupError("no such table")

    with pytest.raises(UsageError, match="no such table") as caught:
        check_kernel(CKernel(declared("Raising"), kernel=Kernel(emit), examples=EXAMPLES))
    assert caught.value.code == "E647"
    assert "test_foreign.py" in caught.value.at[0]


def test_c_that_does_not_compile_names_the_operator() -> None:
    with pytest.raises(UsageError, match=r"vendor\.kernels\.Broken does not compile") as caught:
        check_kernel(CKernel(declared("Broken"), "{0} +* {1}", examples=EXAMPLES))
    assert caught.value.code == "E647"
    assert caught.value.at == ("text '{0} +* {1}'",)
    assert "error" in caught.value.why


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("kernel = 5", "is not a CKernel"),
        ("from smelt.native.operators import CONV_RELU as o", "E651"),
        ("from smelt.native.kernels.nothing import kernel", "ModuleNotFoundError"),
    ],
)
def test_a_package_with_a_mistake_is_left_out_and_named(
    tmp_path: Path, code: str, why: str
) -> None:
    if "CONV_RELU" in code:
        code += "\nimport numpy\nfrom smelt.native.kernels.foreign import CKernel"
        code += "\nkernel = CKernel(o, '{0}', examples=(((numpy.ones(1),), {}),))"
    points = "[smelt.c.kernels]\nkernel = slips:kernel\n"
    with installed(tmp_path, "slips", code, points), KERNELS.refilled():
        with pytest.warns(UserWarning, match=f"slips 1.0 cannot be loaded.*{why}"):
            assert "Conv" in KERNELS
        (listed,) = [each for each in plugins() if each.package == "slips"]
        assert (listed.group, listed.state) == ("smelt.c.kernels", "error")


def test_a_wrong_text_is_found() -> None:
    with pytest.raises(Mismatch) as caught:
        check_kernel(CKernel(declared("Wrong"), "{0} + {1}", examples=EXAMPLES))
    assert caught.value.code == "E705"


def test_a_kernel_has_a_test_and_one_text() -> None:
    with pytest.raises(UsageError, match="no example"):
        CKernel(declared("Untested"), "{0}")
    with pytest.raises(UsageError, match="neither of text and kernel"):
        CKernel(declared("Empty"), examples=EXAMPLES)
    with pytest.raises(UsageError, match="the operator of a CKernel is of type str"):
        CKernel("Named", "{0}", examples=EXAMPLES)  # type: ignore[arg-type]


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
import cubes, numpy as np, smelt  # imported first, and by the entry point later
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
