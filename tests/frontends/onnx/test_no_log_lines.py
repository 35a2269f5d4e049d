"""Loading a broken model raises our error, and no library logs lines of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

import onnx
import onnx_ir as ir
import pytest
from frontends.onnx.broken import (
    accepted,
    attributes,
    control_flow,
    functions,
    graphs,
    tensors,
    types,
    versions,
)
from frontends.onnx.broken.change import changed, text
from onnx import helper

import smelt
from smelt.errors import SmeltError

FAMILIES = (accepted, versions, graphs, types, attributes, control_flow, functions, tensors)
MODELS = {name: model for family in FAMILIES for name, model in family.CASES.items()}


def _bytes(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute.append(helper.make_attribute("blob", b"\xff\xfe"))


def _devices(model: onnx.ModelProto) -> None:
    if hasattr(model, "configuration"):
        model.configuration.add(name="cluster", num_devices=2)


CUSTOM = text("g (float[4] x) => (y) { y = mine.Thing(x) }", also=', "mine" : 1')
MODELS |= {
    "a text of another domain that is no text": changed(CUSTOM, _bytes),
    "devices before their IR version": changed(CUSTOM, _devices),
}


@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS.keys())
def test_nothing_is_logged(
    build: Callable[[], onnx.ModelProto],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    model = build()
    with caplog.at_level(logging.INFO):
        for run in (smelt.optimize, lambda source: smelt.to_proto(smelt.load(source))):
            with suppress(SmeltError):
                run(model)
    assert [record.getMessage() for record in caplog.records] == []
    assert capfd.readouterr() == ("", "")


def test_models_read_without_smelt_are_logged_as_before(caplog: pytest.LogCaptureFixture) -> None:
    model = MODELS["a value that nothing writes"]()
    with pytest.raises(SmeltError):
        smelt.load(model)
    assert not caplog.records
    ir.from_proto(model)
    assert any("cannot be found" in record.getMessage() for record in caplog.records)
