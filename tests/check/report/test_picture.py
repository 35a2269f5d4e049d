"""The picture of one layer: which part it shows, and what it draws."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter

import pytest
from hostile_names import HOSTILE, hostile_report
from report_pages import layers, modules, optimized
from small_models import MODEL, VARIED

import smelt
from smelt.check.report.layer import part_of
from smelt.errors import UsageError
from smelt.ir.text import parse

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str) -> Counter[str]:
    """Return the texts of a picture, with their counts."""
    return Counter(each.text or "" for each in ET.fromstring(svg).iter(f"{SVG}text"))


def part(report: smelt.HtmlReport):
    found = report.document()
    return part_of(found["before"], found["after"])


def test_a_small_model_is_drawn_whole():
    report = optimized(MODEL)
    texts = drawn(report.to_svg())
    assert part(report).path == ()
    assert (texts["Identity"], texts["MatMul"], texts["Relu"]) == (1, 2, 2)
    assert (texts["B 4\N{MULTIPLICATION SIGN}4"], texts["float[B,4]"]) == (2, 4)  # the weight, x, y
    assert texts["Before: 3 nodes"] == texts["After: 2 nodes"] == 1
    assert texts["3 nodes became 2"] == 1


def test_a_layer_stands_for_those_that_are_like_it():
    found = part(optimized(modules(4)))
    assert found.pattern == "layer.#"
    assert found.counts[0] == 10 > found.counts[1] > 0


def test_of_layers_that_differ_one_of_the_most_frequent_kind_is_drawn():
    model = modules(4)
    list(model.graph)[3].op_type = "Neg"  # in the first layer, which keeps all of its nodes
    assert part(optimized(model)).path == ("layer.1",)


def test_a_module_that_does_not_repeat_is_drawn_if_the_model_is_too_large():
    model = modules(12)
    names = ["stem", *["trunk"] * 10, "head"]
    for index, node in enumerate(model.graph):
        node.name = f"/{names[index // 10]}/{node.op_type}"
    assert part(optimized(model)).path in [("stem",), ("head",)]


def test_a_layer_without_a_name_is_named_by_what_it_computes():
    svg = optimized(layers(20)).to_svg()
    assert any("feed-forward, block" in text for text in drawn(svg))


@pytest.mark.parametrize("text", [*VARIED.values(), "g () => () { }"], ids=[*VARIED, "empty"])
def test_every_model_has_a_picture(text):
    report = smelt.HtmlReport()
    report.history.begin(parse(text))
    ET.fromstring(report.to_svg())


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_text(name):
    svg = hostile_report(name).to_svg()
    tags = {each.tag.removeprefix(SVG) for each in ET.fromstring(svg).iter()}
    assert tags <= {"svg", "rect", "text", "g", "path"}


def test_a_picture_loads_nothing():
    svg = optimized(modules(3)).to_svg()
    assert svg.count("http") == 1  # the namespace
    assert "url(" not in svg
    assert "<style" not in svg


def test_without_a_model_there_is_no_picture():
    with pytest.raises(UsageError, match="no model to draw"):
        smelt.HtmlReport().to_svg()
