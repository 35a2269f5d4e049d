"""What is no model, path, pipeline or target is refused by code, wherever it is given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import smelt
from smelt.ir import text

MODEL = "g (float[2] x) => (float[2] y) { y = Abs(x) }"


def _model() -> Any:
    return text.parse(MODEL)


CALLS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "to_proto": ("E301", smelt.to_proto),
    "inspect": ("E301", smelt.inspect),
    "optimize": ("E301", smelt.optimize),
    "save": ("E301", lambda wrong: smelt.save(wrong, "never.onnx")),
    "fill_weights": ("E301", lambda wrong: smelt.fill_weights(wrong, {})),
    "save to": ("E614", lambda wrong: smelt.save(_model(), wrong)),
    "pipeline": ("E602", lambda wrong: smelt.optimize(_model(), pipeline=wrong)),
    "compile's pipeline": ("E602", lambda wrong: smelt.compile(_model(), pipeline=wrong)),
    "target": ("E611", lambda wrong: smelt.compile(_model(), target=wrong)),
    "load_artifact": ("E616", smelt.load_artifact),
}


@pytest.mark.parametrize("wrong", [None, 3, ["m.onnx"]], ids=repr)
@pytest.mark.parametrize(("code", "call"), CALLS.values(), ids=CALLS)
def test_another_type(code: str, call: Callable[[Any], object], wrong: object) -> None:
    with pytest.raises(smelt.SmeltError) as caught:
        call(wrong)
    assert caught.value.code == code


def test_dims_that_are_no_mapping() -> None:
    with pytest.raises(smelt.SmeltError) as caught:
        smelt.compile(_model(), dims=3)  # type: ignore[arg-type]
    assert caught.value.code == "E633"


def test_an_artifact_is_saved_to_folders_alone(tmp_path: Path) -> None:
    artifact = smelt.compile(_model(), target="onnx")
    (tmp_path / "file").write_text("")
    for wrong in (None, tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(smelt.SmeltError) as caught:
            artifact.save(wrong)  # type: ignore[arg-type]
        assert caught.value.code == "E614"
    assert (tmp_path / "file").read_text() == ""


def test_a_proto_or_a_path_is_a_model(tmp_path: Path) -> None:
    path = smelt.save(_model(), tmp_path / "m.onnx")
    assert smelt.to_proto(path).graph.node[0].op_type == "Abs"
    assert smelt.to_proto(smelt.to_proto(_model())).graph.node[0].op_type == "Abs"
    assert smelt.inspect(path).interface.inputs[0].name == "x"
