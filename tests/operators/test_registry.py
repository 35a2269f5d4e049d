"""Which operators there are, and how a package adds one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from smelt import operators
from smelt.errors import UsageError
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators import registry
from smelt.operators.declare import Operator, Result

PACKAGE = """
import numpy as np
from smelt.operators.declare import Operator, Result

twice = Operator(
    domain="example",
    name="Twice",
    inputs=("x",),
    outputs=("y",),
    infer=lambda inputs, attributes: (Result(inputs[0].dtype, inputs[0].shape),),
    reference=lambda inputs, attributes: (2 * inputs[0],),
    body=lambda b, inputs, attributes: (b.op("Add", inputs[0], inputs[0]),),
)
nothing = 3
"""


@pytest.fixture
def fresh() -> Iterator[None]:
    """The registry before entry points are loaded; put back afterwards."""
    with registry.OPERATORS.refilled():
        yield


@pytest.fixture
def package(tmp_path: Path, fresh: None) -> Iterator[Path]:
    (tmp_path / "twice_operator.py").write_text(PACKAGE)
    info = tmp_path / "twice_operator-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: twice-operator\nVersion: 1.0\n")
    sys.path.insert(0, str(tmp_path))
    yield info / "entry_points.txt"
    sys.path.remove(str(tmp_path))
    sys.modules.pop("twice_operator", None)


def test_ours_are_listed_in_order() -> None:
    ours = [op.key for op in operators.all_operators() if op.domain == "smelt"]
    assert ours == sorted(ours)
    assert {("smelt", name) for name in ("Bitcast", "Cholesky", "DotGeneral", "Lgamma")} <= {*ours}


@pytest.mark.parametrize("operator", operators.all_operators(), ids=lambda op: op.name)
def test_every_operator_says_what_it_is(operator: Operator) -> None:
    assert operator.summary
    assert operator.inputs
    assert operator.outputs
    assert operators.find(*operator.key) is operator


def test_unknown_operators_are_none() -> None:
    assert operators.find("smelt", "Nothing") is None
    assert operators.find("", "Add") is None


def test_a_package_adds_operators(package: Path) -> None:
    package.write_text("[smelt.operators]\ntwice = twice_operator:twice\n")
    found = operators.find("example", "Twice")
    assert found is not None
    (result,) = found.reference((np.ones(2),), {})
    np.testing.assert_array_equal(result, 2)


def test_an_entry_point_must_name_operators(package: Path) -> None:
    package.write_text("[smelt.operators]\nnothing = twice_operator:nothing\n")
    with pytest.raises(UsageError, match="'nothing'") as caught:
        operators.all_operators()
    assert caught.value.code == "E641"


def test_a_name_taken_twice_is_an_error(fresh: None) -> None:
    taken = operators.find("smelt", "Cholesky")
    assert taken is not None
    operators.register(taken)
    other = Operator(
        domain="smelt",
        name="Cholesky",
        inputs=("x",),
        outputs=("y",),
        infer=lambda inputs, attributes: (Result(None, None),),
        reference=lambda inputs, attributes: (),
    )
    with pytest.raises(UsageError, match=r"smelt\.Cholesky") as caught:
        operators.register(other)
    assert caught.value.code == "E640"


def test_unknown_dims_get_symbols_of_their_own() -> None:
    model = text.parse("g (float[M] a, float[N] x) => (y) { y = smelt.Igamma(a, x) }")
    ShapeInference(model).infer_model()
    (result,) = model.graph.outputs
    assert result.dtype == ir.DataType.FLOAT
    assert result.shape is not None
    assert str(result.shape[0]) not in {"M", "N"}
