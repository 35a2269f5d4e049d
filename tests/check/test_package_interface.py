"""A Core ML package is compared through the interface of the model from which it was made."""

from __future__ import annotations

from pathlib import Path

import pytest

import smelt
from smelt.check.verify import verify
from smelt.ir import text

MODELS = {
    "integers and bools": """g (int64[B] i, float[B,3] x, bool[B] k)
        => (float[B,3] y, int64[B] j, bool[B] n) <int64 one = {1}>
        { f = Cast<to=1>(i) s = Unsqueeze(f, one) y = Mul(x, s) j = Add(i, one) n = Not(k) }""",
    "names with other characters": """g (float[B,3] "a:0") => (float[B,3] "b/c")
        { "b/c" = Relu("a:0") }""",
    "names that become equal, and words of Core ML": """g (float[B,3] "a:0", float[B,3] a_0)
        => (float[B,3] tensor, float[B,3] "1") { tensor = Sub("a:0", a_0) "1" = Neg(a_0) }""",
}


@pytest.fixture(params=MODELS.values(), ids=MODELS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """Return the file of a model, and the float16 package made from it."""
    source, package = tmp_path / "m.onnx", tmp_path / "m.mlpackage"
    smelt.save(text.parse(request.param), source)
    artifact = smelt.compile(source, target="coreml", dims={"B": (1, 4)}, verify="final")
    artifact.save(package)
    return source, package


def test_both_orders_agree(pair: tuple[Path, Path]) -> None:
    source, package = pair
    for a, b in ((source, package), (package, source), (smelt.load(source), smelt.load(package))):
        report = verify(a, b)
        assert report.ok, str(report)
        assert not report.interface


def test_another_model_differs(pair: tuple[Path, Path], tmp_path: Path) -> None:
    _, package = pair
    other = text.parse("g (float[B,3] x) => (float[B,3] y) { y = Neg(x) }")
    assert not verify(other, package).ok
