"""The graphs on the page: groups on both sides, search, and what a click does."""

from __future__ import annotations

from pathlib import Path

from report_pages import modules, optimized, texts
from small_models import HEADER

import smelt
from smelt.ir.text import parse

EXPORTS = sorted((Path(__file__).parents[2] / "models").glob("*.onnx"))
"""Small exports of PyTorch, TensorFlow and JAX: more than ten."""


FIRST_HITS = """(() => {
    const input = document.getElementById("search");
    const operators = [...new Set([...data.before.nodes, ...data.after.nodes].map(node => node.op))];
    return operators.map(op => {
        input.value = op.toLowerCase();
        input.dispatchEvent(new Event("input"));
        return [op, document.querySelector(".found li b").textContent];
    });
})()"""
"""Each operator of both sides with the operator of the first hit for its name."""


def test_the_first_hit_for_an_operator_has_that_operator(show):
    operators = set()
    for path in EXPORTS:
        report = smelt.HtmlReport(path.stem)
        report.history.begin(smelt.load(path))
        for op, hit in show(report).ask(FIRST_HITS):
            assert hit == op, path
            operators.add(op)
    assert len(operators) > 20


def test_search_finds_operators_then_names_then_values(show):
    text = (
        HEADER
        + "g (float[4] x) => (float[4] y) { relu = Neg(x) b = Abs(relu) d = Relu(b) y = Sin(d) }"
    )
    model = parse(text)
    model.graph[1].name = "the/relu/of"
    report = smelt.HtmlReport()
    report.history.begin(model)
    page = show(report)
    page.press("/", "relu")
    assert texts(page, ".found li b")[::2] == ["Relu", "Abs", "Neg"]


def test_a_node_of_constants_is_folded_away_and_found(show):
    text = (
        HEADER
        + """g (float[4,4] x) => (float[4,4] y) {
        w = Constant<value=float[4,4] {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}>()
        t = Transpose(w) n = Neg(t) y = MatMul(x, n) }"""
    )
    report = smelt.HtmlReport()
    report.history.begin(parse(text))
    page = show(report)
    assert texts(page, ".pane:first-child .node > .title") == ["MatMul"]
    assert "B constant" in texts(page, ".pane:first-child .node > .line")
    page.press("/", "transpose")
    page.press("Enter")
    assert texts(page, ".pane:first-child .selected > .title") == ["MatMul"]
    assert page.ask("document.querySelector('.details h2').textContent") == "Transpose"


def test_groups_of_both_sides_open_together_and_stand_at_one_height(show):
    page = show(optimized(modules(4)))

    def of_both(what: str) -> list[list[object]]:
        found = "[...document.querySelectorAll('.pane')].map(pane => [...pane.querySelectorAll"
        return page.ask(f"{found}('.group > .title')].map(e => {what}))")

    before, after = of_both("e.textContent")
    assert before == after == [f"\u2212 layer.{index}" for index in range(4)]
    first, second = of_both("Math.round(e.getBoundingClientRect().top)")
    assert first == second
    page.click(".pane:nth-child(2) .group > .title", 0)
    before, after = of_both("e.textContent")
    assert before == after
    assert before[0] == "+ layer.0"


def test_elements_that_look_clickable_react_to_clicks(show):
    page = show(optimized(modules(2)))
    page.click(".key.is-gone")
    assert texts(page, ".pane:first-child .selected > .title") == ["Identity"]
    page.click(".figure", 3)
    assert texts(page, "nav button[aria-selected=true]") == ["Passes"]
    page.click("main:not([hidden]) td button.link")
    assert texts(page, "nav button[aria-selected=true]") == ["Graph"]
    page.click(".figure", 0)
    page.click(".operators button.link", 0)
    assert texts(page, ".found li b")[0] in texts(page, ".operators td:first-child")
    page.press("Escape")
    page.click(".kind")
    assert page.ask("document.querySelectorAll('.found li b').length") > 0
