"""Operator sets of an onnx release that is newer than smelt are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx
import onnx_ir as ir
import pytest
from onnx import defs

import smelt
from smelt.errors import InvalidModel, Unsupported
from smelt.frontends.onnx.checks import versions
from smelt.frontends.onnx.read import Source
from smelt.ir.known_forms import NEWEST_READ
from smelt.ir.opsets.raise_opset import raise_opset

MODEL = "g (float[4] x) => (float[4] y) { y = Relu(x) }"
CALL = "g (float[4] x) => (float[4] y) { y = f.F(x) } "
NEXT = NEWEST_READ + 1
NEXT_IR = versions.NEWEST_IR + 1
INSTALLED_IR = onnx.IR_VERSION


@pytest.fixture(autouse=True)
def _newer_onnx(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stands for a release of onnx that knows the next operator set and IR version."""
    release = ("99.0", NEXT_IR, NEXT, 5, 1)
    monkeypatch.setattr(onnx.helper, "VERSION_TABLE", [*onnx.helper.VERSION_TABLE, release])
    monkeypatch.setattr(onnx, "IR_VERSION", NEXT_IR)
    monkeypatch.setattr(defs, "onnx_opset_version", lambda: NEXT)
    versions._known_versions.cache_clear()
    yield
    versions._known_versions.cache_clear()


def _model(opset: int, version: int = 10, domain: str = "") -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: {version}, opset_import: ["{domain}" : {opset}]> {MODEL}'
    )


def _with_a_function(opset: int) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 20, "f" : 1]> {CALL}'
        f'<domain: "f", opset_import: ["" : {opset}]> F (a) => (b) {{ b = Relu(a) }}'
    )


NEWER = {
    "the model": lambda: _model(NEXT),
    "by the other name of the domain": lambda: _model(NEXT, domain="ai.onnx"),
    "a function": lambda: _with_a_function(NEXT),
    "a model in memory": lambda: ir.from_proto(_model(NEXT)),
}


@pytest.mark.parametrize("source", NEWER.values(), ids=NEWER.keys())
@pytest.mark.parametrize("run", [smelt.load, smelt.optimize, smelt.compile])
def test_a_newer_opset_is_refused(
    run: Callable[[Source], object], source: Callable[[], Source]
) -> None:
    with pytest.raises(InvalidModel, match=f"imports version {NEXT}") as caught:
        run(source())
    assert caught.value.code == "E319"
    assert f"is {NEWEST_READ}" in caught.value.why
    assert "install a newer smelt" in caught.value.fix


def test_a_newer_ir_version_is_refused() -> None:
    with pytest.raises(InvalidModel, match=f"IR version {NEXT_IR}") as caught:
        smelt.load(_model(20, NEXT_IR))
    assert caught.value.code == "E319"


def test_the_newest_that_was_read_is_taken() -> None:
    model = _model(NEWEST_READ, versions.NEWEST_IR)
    assert smelt.optimize(model).opset_import[0].version == NEWEST_READ


def test_no_model_is_raised_to_it() -> None:
    with pytest.raises(Unsupported, match=f"to {NEXT}") as caught:
        raise_opset(smelt.load(_model(20)), NEXT)
    assert caught.value.code == "E230"


def test_every_ir_version_of_the_installed_onnx_was_read() -> None:
    """If this fails: read what the new version can say, make the code heed it, then raise
    ``NEWEST_IR``."""
    assert INSTALLED_IR <= versions.NEWEST_IR
