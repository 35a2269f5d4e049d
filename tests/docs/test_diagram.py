"""The pictures of pass pages: found on each page, split into before and after, drawn."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from smelt.passes.registry import passes

PATH = Path(__file__).parents[2] / "docs" / ".theme" / "diagram.py"
SPEC = importlib.util.spec_from_file_location("diagram", PATH)
assert SPEC is not None
assert SPEC.loader is not None
diagram = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(diagram)

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(svg).iter(f"{SVG}text")]


def test_sides_below_each_other() -> None:
    page = "Summary.\n\n    before   x ─┬─> Relu ─┐\n                └────────┴─> Mul ─> y\n    after    x ─> Swish ─> y\n\nNeeds    (1) this."
    [(before, after)] = diagram.pictures_of(page)
    assert before == ["x ─┬─> Relu ─┐", "   └────────┴─> Mul ─> y"]
    assert after == ["x ─> Swish ─> y"]
    assert texts(diagram.svg_of(before)) == ["x", "Relu", "Mul", "y"]


def test_sides_beside_each_other() -> None:
    page = "    before   x ─┬─> Relu ─> y    after   x ─> Relu ─> y\n                └─> Exp\n    before   a ─> b                  after   a"
    found = list(diagram.pictures_of(page))
    assert found == [
        (["x ─┬─> Relu ─> y", "   └─> Exp"], ["x ─> Relu ─> y"]),
        (["a ─> b"], ["a"]),
    ]


def test_lines_join_the_sides_of_their_characters() -> None:
    root = ET.fromstring(diagram.svg_of(["─┐", " │"]))
    assert len(root.findall(f"{SVG}path")) == 3
    assert len(ET.fromstring(diagram.svg_of(["─>"])).findall(f"{SVG}path")) == 2


def test_operators_have_the_colour_of_their_kind() -> None:
    root = ET.fromstring(diagram.svg_of(["x ─> MatMul(W) ─> 2 * y"]))
    assert [box.get("fill") for box in root.iter(f"{SVG}rect")] == [diagram.COLOURS["product"]]


@pytest.mark.parametrize("each", passes().values(), ids=lambda each: each.name)
def test_every_pass_has_a_picture(each) -> None:
    found = list(diagram.pictures_of(each.page))
    assert found
    for before, after in found:
        assert texts(diagram.svg_of(before))
        assert texts(diagram.svg_of(after))
        assert "after" not in " ".join(before)
