"""What IPython shows of a model, an artifact, a verification and the reports of passes."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import onnx_ir as ir
import pytest
from IPython.core.interactiveshell import InteractiveShell

import smelt
from smelt.check.verification_record import VerificationRecord
from smelt.compiler import optimize_model
from smelt.ir import text
from smelt.ir.html.markup import escaped

GRAPH = "g (float[B,4] x) => (float[B,4] y) { a = Relu(x) b = Relu(a) c = Exp(x) y = Add(b, c) }"
EVIL = "<script>alert(1)</script>\"'&\n\x00\u202e"


@pytest.fixture(scope="module")
def shell():
    found = InteractiveShell.instance()
    smelt.load_ipython_extension(found)
    yield found
    InteractiveShell.clear_instance()


@pytest.fixture
def html(shell):
    """What the shell shows as HTML, well-formed and without anything active in it."""

    class Tags(HTMLParser):
        def __init__(self):
            super().__init__()
            self.seen = set()
            self.attributes = set()

        def handle_starttag(self, tag, attrs):
            self.seen.add(tag)
            self.attributes |= {name for name, _ in attrs}

    def show(shown):
        formats, _ = shell.display_formatter.format(shown)
        tags = Tags()
        tags.feed(formats["text/html"])
        assert tags.seen <= {
            "div",
            "p",
            "strong",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "svg",
            "g",
            "title",
            "rect",
            "text",
            "path",
        }
        assert not {
            name
            for name in tags.attributes
            if name.startswith("on") or name in ("href", "src", "id")
        }
        ElementTree.fromstring(formats["text/html"])
        return formats["text/html"]

    return show


def large(nodes):
    body = " ".join(f"v{i} = Relu({'x' if i == 0 else f'v{i - 1}'})" for i in range(nodes))
    return text.parse(f"g (float[4] x) => (float[4] y) {{ {body} y = Neg(v{nodes - 1}) }}")


def test_a_small_model_is_a_picture(html):
    shown = html(text.parse(GRAPH))
    assert shown.count("<rect") == 6
    assert shown.count("<path") == 6
    assert "x float[B,4]" in shown
    assert "4 nodes" in shown


def test_a_large_model_is_a_table(html):
    shown = html(large(3000))
    assert "<svg" not in shown
    assert "3,000" in shown
    assert len(shown) < 10_000


def test_a_model_without_nodes_and_one_with_graphs_in_it(html):
    assert "0 nodes" in html(
        ir.Model(ir.Graph([], [], nodes=[], opset_imports={"": 20}), ir_version=9)
    )
    branch = "g (bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] a) { a = Neg(x) }, else_branch = e () => (float[2] b) { b = Exp(x) }> }"
    shown = html(text.parse(branch))
    assert shown.count("<path") == 3, "the branches read x"


def test_names_are_never_markup(html):
    model = text.parse(GRAPH)
    model.graph.name = EVIL
    for node in model.graph:
        node.name = EVIL
        node.op_type = EVIL
    model.graph.inputs[0].name = EVIL
    model.graph.inputs[0].shape = ir.Shape([ir.SymbolicDim("B"), 4])
    shown = html(model)
    assert "alert(1)" in shown
    assert "<script" not in shown
    assert "\x00" not in shown
    assert escaped("a" * 1000) == "a" * 199 + "…"


def test_nodes_in_the_wrong_order_are_shown(html):
    model = text.parse(GRAPH)
    first = model.graph[0]
    model.graph.remove(first)
    model.graph.append(first)
    assert "<svg" in html(model)


def test_an_artifact_is_one_line_and_a_table(html):
    artifact = smelt.compile(text.parse(GRAPH), target="onnx")
    assert re.fullmatch(r"<Artifact of target 'onnx': \d nodes, model.onnx>", repr(artifact))
    shown = html(artifact)
    assert "model.onnx" in shown
    assert "<svg" in shown


def test_a_verification_is_one_line_and_a_table(html):
    a, b = text.parse(GRAPH), text.parse(GRAPH.replace("Exp", "Neg"))
    same, different = smelt.verify(a, a), smelt.verify(a, b)
    assert repr(same).startswith("<Report: same in ")
    assert repr(different).startswith("<Report: DIFFERENT, ")
    assert "\n" not in repr(different)
    assert html(same).count("<tr>") > 2
    assert "DIFFERS" in html(different)


def test_reports_and_evidence_are_one_line_and_a_table(html):
    reports = optimize_model(text.parse(GRAPH), verify="final")
    assert re.fullmatch(
        r"<Reports: \d+ of \d+ pass runs changed something, 4 -> 3 nodes, verified .*>",
        repr(reports),
    )
    assert "merge-consecutive-relus" in html(reports)
    changed = next(report for report in reports if report.changed)
    assert re.fullmatch(r"<PassReport [\w-]+: 1 rewrites, 4 -> 3 nodes, .* ms>", repr(changed))
    assert repr(reports.evidence).startswith("<VerificationRecord: verified after 2 changes at B=")
    assert "ulp" in html(reports.evidence)
    assert (
        repr(VerificationRecord("each"))
        == "<VerificationRecord: nothing to verify: no pass changed anything>"
    )


def test_a_formatter_of_the_user_stays_and_ours_can_be_taken_away():
    other = InteractiveShell()
    formatter = other.display_formatter.formatters["text/html"]
    formatter.for_type(ir.Model, lambda model: "mine")
    smelt.load_ipython_extension(other)
    model = text.parse(GRAPH)
    assert other.display_formatter.format(model)[0]["text/html"] == "mine"
    formatter.pop(ir.Model)
    smelt.load_ipython_extension(other)
    assert "<svg" in other.display_formatter.format(model)[0]["text/html"]
    smelt.unload_ipython_extension(other)
    assert "text/html" not in other.display_formatter.format(model)[0]


PROBE = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
result = shell.run_cell('''
import smelt, sys
assert "onnx_ir" not in sys.modules
from smelt.ir import text
model = text.parse("g (float[4] x) => (float[4] y) { y = Relu(x) }")
''')
result.raise_error()
print("<svg" in shell.display_formatter.format(shell.user_ns["model"])[0]["text/html"])
shell.run_line_magic("load_ext", "smelt")
shell.run_line_magic("unload_ext", "smelt")
print("text/html" in shell.display_formatter.format(shell.user_ns["model"])[0])
"""


def test_in_a_running_shell_the_import_is_enough():
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_without_a_shell_ipython_is_not_imported():
    code = "import sys, smelt; smelt.load; print({'IPython', 'smelt.notebook'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "set()"
