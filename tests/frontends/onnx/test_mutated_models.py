"""A damaged model is refused with a coded error, or the result is valid ONNX."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import TypeVar

import onnx
import pytest
from frontends.onnx.broken import accepted
from frontends.onnx.broken.functions import GOOD
from frontends.onnx.mutations import cut, mutate
from small_models import MODEL, VARIED

import smelt
from smelt.errors import SmeltError

FOLDER = Path(__file__).parents[2] / "models"
EXPORTED = ("tf2onnx_cnn", "torchscript_cnn", "torchscript_llama")
TARGETS = ("onnx", "host", "c")
QUICK = 200
ALL = 4000
SMALL = 3000
"""Bytes of a model up to which it is compiled for every target, too."""
T = TypeVar("T")


@cache
def sources() -> tuple[onnx.ModelProto, ...]:
    """Return the models to damage: one of an exporter for each four small ones."""
    written = [onnx.parser.parse_model(text) for text in (MODEL, *VARIED.values())]
    built = [GOOD(), accepted.CASES["a sparse weight"]()]
    small = [*written, *built]
    exported = [onnx.load(FOLDER / f"{name}.onnx") for name in EXPORTED]
    return (*small, *exported)


def is_valid(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model)
    except Exception:  # noqa: BLE001 - the checker raises as it likes
        return False
    return True


def unless_refused(run: Callable[[], T], *what: str) -> T | None:
    """Return the result of ``run``; None if it raises a coded error that is not internal (E9xx)."""
    refusal = None
    try:
        return run()
    except SmeltError as error:
        refusal = error
    assert not refusal.code.startswith("E9"), (what, refusal)
    return None


def check(number: int) -> None:
    """Load, optimize and compile the model with damage ``number``, the same in every run."""
    random = Random(number)
    source = random.choice(sources())
    model = onnx.ModelProto()
    model.CopyFrom(source)
    what = mutate(model, random)
    result = unless_refused(lambda: smelt.optimize(model), what)
    unless_refused(lambda: smelt.to_proto(smelt.load(model)), what)
    if result is None:
        return
    if not is_valid(result):
        assert not is_valid(model), what
    for target in TARGETS if source.ByteSize() < SMALL else ():
        unless_refused(lambda target=target: smelt.compile(model, target=target), what, target)


@pytest.mark.parametrize("number", range(QUICK))
def test_damage_to_a_field(number: int) -> None:
    check(number)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, ALL, 100))
def test_more_damage_to_fields(first: int) -> None:
    for number in range(first, first + 100):
        check(number)


@pytest.mark.parametrize("number", range(60))
def test_damage_to_the_file(number: int) -> None:
    random = Random(number)
    data = cut(random.choice(sources()[:-1]).SerializeToString(), random)
    unless_refused(lambda: smelt.to_proto(smelt.load(data)), "bytes")
