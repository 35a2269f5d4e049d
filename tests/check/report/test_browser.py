"""The page in a real browser: it draws, searches, opens and selects, and loads nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_names import HOSTILE, hostile_report
from report_pages import layers, optimized, texts
from small_models import MODEL, VARIED

import smelt
from smelt.ir.text import parse
from smelt.spans import recording


def is_blank(png: bytes) -> bool:
    """True for a picture of one colour with at most a frame; a picture without text has a few kB."""
    return len(png) < 12_000


def test_both_graphs_are_drawn(show):
    page = show(optimized(MODEL))
    before, after = (texts(page, f".pane:nth-child({n}) .node > .title") for n in (1, 2))
    assert (before, after) == (["Identity", "MatMul", "Relu"], ["MatMul", "Relu"])
    assert texts(page, ".pane:first-child .is-gone > .title") == ["Identity"]
    assert texts(page, "nav button") == ["Graph", "Passes", "Model"]
    assert not is_blank(page.screenshot())


def test_a_selected_node_shows_its_facts_and_its_partner(show):
    page = show(optimized(MODEL))
    page.click(".pane:nth-child(2) .node", 0)
    assert page.ask("document.querySelector('.details h2').firstChild.data") == "MatMul"
    facts = page.ask("document.querySelector('.details').textContent")
    assert "float[4,4]" in facts
    assert "constant, 64 B, 1 to 16" in facts
    assert texts(page, ".pane:first-child .partner > .title") == ["MatMul"]
    page.click(".details button.link")
    assert texts(page, ".pane:first-child .selected > .title") == ["MatMul"]
    page.press("Escape")
    assert page.ask("document.querySelector('.details').hidden")
    assert texts(page, ".selected, .partner") == []


def test_five_thousand_nodes_are_collapsed_found_and_opened(show):
    report = smelt.HtmlReport("large")
    report.history.begin(parse(layers(500)))
    page = show(report)
    assert 1 < page.ask("document.querySelectorAll('.item').length") < 400
    assert page.ask("document.querySelector('.pane header').textContent").startswith(
        "Before 5,000 nodes"
    )
    page.press("/", "erf v4988")
    assert texts(page, ".found li")[-1] == "2 found"
    page.press("Enter")
    assert texts(page, ".pane:first-child .selected > .title") == ["Erf"]
    page.press("Escape")
    page.click(".tools button", 1)
    collapsed = page.ask("document.querySelectorAll('.pane:first-child .item').length")
    page.click(".pane:first-child .group", 0)
    assert page.ask("document.querySelectorAll('.pane:first-child .item').length") > collapsed


def test_the_arena_and_the_time_are_pictures(show):
    with recording() as recorder:
        report = smelt.HtmlReport("c")
        report.artifact = smelt.compile(
            parse(VARIED["attention"]), target="c", observers=[report], name="m"
        )
    report.recorder = recorder
    page = show(report, "#Memory")
    assert page.ask("document.querySelectorAll('.buffer').length") > 2
    inside = """[...document.querySelectorAll('.buffer')].every(each => {
        const [box, all] = [each, each.closest('svg')].map(e => e.getBoundingClientRect());
        return box.top >= all.top - 1 && box.bottom <= all.bottom + 1 && box.right <= all.right + 1;
    })"""
    assert page.ask(inside)
    page.click("nav button", 2)
    assert texts(page, "main:not([hidden]) h2")[0].startswith("Where time went")
    spans = page.ask("document.querySelectorAll('.span').length")
    page.click(".span", spans - 1)
    assert page.ask("document.querySelectorAll('.span').length") <= spans


@pytest.mark.parametrize("kind", ["branches", "a loop"])
def test_bodies_are_groups_of_their_node(show, kind):
    page = show(optimized(VARIED[kind]))
    assert texts(page, ".pane:first-child .group > .title")[0].endswith(
        "If" if kind == "branches" else "Loop"
    )


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_text(show, name):
    page = show(hostile_report(name))
    page.ask("window.alert = () => { document.body.dataset.hacked = 'yes' }")
    page.click(".pane:first-child .node", 0)
    page.press("/", "relu")
    page.press("Enter")
    assert page.ask("document.querySelectorAll('script, img, iframe').length") == 2
    assert page.ask("document.body.dataset.hacked") is None


def test_a_notebook_shows_it_in_a_frame(browser, tmp_path):
    report = optimized(MODEL)
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<body data-ready='yes'>{report._repr_html_()}")
    browser.size(1280, 800)
    browser.open(notebook)
    for _ in range(300):  # the frame has a process of its own
        if not is_blank(browser.screenshot()):
            break
        browser.ask("new Promise(done => setTimeout(done, 100))")
    assert not is_blank(browser.screenshot())
    assert browser.problems == []


def test_a_script_that_got_in_would_not_run(browser, tmp_path):
    path: Path = optimized(MODEL).save(tmp_path / "report.html")
    text = path.read_text().replace("<noscript>", "<script>document.title='in'</script><noscript>")
    path.write_text(text)
    browser.open(path)
    assert browser.ask("document.title") == "a model · smelt report"
    assert any("Content Security Policy" in problem for problem in browser.problems)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize("anchor", ["", "#Passes", "#Model"])
def test_nothing_sticks_out(show, width, height, anchor):
    page = show(optimized(VARIED["attention"]), anchor)
    page.size(width, height)
    assert page.ask("document.documentElement.scrollWidth") <= width
    assert not is_blank(page.screenshot())


def test_many_inputs_are_one_group(show):
    inputs = ", ".join(f"float[2] x{i}" for i in range(100))
    names = ", ".join(f"x{i}" for i in range(100))
    page = show(optimized(f"g ({inputs}) => (float[200] y) {{ y = Concat<axis=0>({names}) }}"))
    assert texts(page, ".pane:first-child .title") == ["+ 100 inputs", "Concat", "y"]
    page.click(".pane:first-child .group")
    assert page.ask("document.querySelectorAll('.pane:first-child .input').length") == 100


def test_a_page_without_a_model_says_why(show):
    report = smelt.HtmlReport("broken")
    report.error = smelt.SmeltError("E302", "not a <model>", at=["line 1"], fix="another")
    page = show(report)
    assert "not a <model>" in texts(page, ".failure")[0]


def test_a_batch_is_a_table(show):
    report = smelt.HtmlReport("two models")
    common = {"seconds": 1.5, "bytes": None, "evidence": None, "cached": False}
    report.batch = {
        "action": "optimize",
        "options": ["--verify", "final"],
        "counts": {"done": 1, "failed": 1, "missing": 0, "cached": 0},
        "models": [
            {"name": "<b>.onnx", "nodes": [30, 10], "error": None, **common},
            {"name": "b", "nodes": None, "error": {"code": "E301", "what": "no model"}, **common},
        ],
    }
    page = show(report)
    assert texts(page, "nav button") == ["Models"]
    assert texts(page, "tr:first-child td:nth-child(-n+2)")[:2] == ["<b>.onnx", "30 → 10 \u221267%"]
    assert texts(page, "td .bad") == ["E301 no model"]


def test_an_empty_model_is_shown(show):
    report = smelt.HtmlReport()
    report.history.begin(parse("g () => () { }"))
    assert texts(show(report), ".pane header b") == ["Before", "After"]


def test_fit_shows_all(show):
    page = show(optimized(layers(5)))
    page.click(".tools button")
    fits = """[...document.querySelectorAll('.graph')].every(graph => {
        const [inner, outer] = [graph.firstChild, graph].map(e => e.getBoundingClientRect());
        return inner.height <= outer.height && inner.width <= outer.width;
    })"""
    assert page.ask(fits)


def test_the_wheel_zooms_and_the_dark_is_dark(show):
    page = show(optimized(MODEL))
    before = page.ask("document.querySelector('.graph > g').getAttribute('transform')")
    page.call("Input.dispatchMouseEvent", type="mouseWheel", x=300, y=500, deltaX=0, deltaY=-300)
    assert page.ask("document.querySelector('.graph > g').getAttribute('transform')") != before
    light = page.ask("getComputedStyle(document.body).backgroundColor")
    page.size(1280, 800, dark=True)
    assert page.ask("getComputedStyle(document.body).backgroundColor") != light
