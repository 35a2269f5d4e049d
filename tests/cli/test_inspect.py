"""``smelt inspect``: sections for people, lines and JSON for programs."""

from pathlib import Path

import onnx
import pytest
from known_networks import resnet50
from small_models import HEADER

from smelt.frontends.onnx import to_proto

EVIL = "a\tb\nc\x1b[31m"


@pytest.fixture
def resnet(tmp_path):
    path = tmp_path / "resnet.onnx"
    onnx.save(to_proto(resnet50("N")), path)
    return path


def test_work_is_shown_as_a_formula_or_a_number(smelt, resnet, document):
    shown = " ".join(smelt("inspect", resnet).stdout.split())
    assert "all nodes MACs 4089184256*N FLOPs" in shown
    assert "for numbers --dim N=1" in shown
    shown = smelt("inspect", resnet, "--dim", "N=1").stdout
    assert "MACs 4.09 G FLOPs" in " ".join(shown.split())
    assert "depth " in shown
    facts = document(smelt("inspect", resnet, "--dim", "N=1", "--json"))
    assert facts["macs"] == 4_089_184_256
    assert facts["work"]["Conv"]["nodes"] == 53
    assert facts["work"]["Conv"]["not_counted"] == 0
    assert document(smelt("inspect", resnet, "--json"))["macs"] == "4089184256*N"
    assert facts["longest_chains"][0]["operators"][-1] == "Gemm"


def test_a_long_formula_is_left_to_a_size(smelt, write):
    """A table of such formulas is wider than any terminal, and its size cannot be read off it."""
    model = write(
        f"{HEADER} g (float[1,1,samples] x, float[8,1,9] w) => (float[1,8,m] y) "
        "{ h = Conv<strides=[4], pads=[3,3]>(x, w) e = Exp(h) "
        "y = MaxPool<kernel_shape=[5], strides=[3], ceil_mode=1>(e) }"
    )
    shown = smelt("inspect", model).stdout
    total = " ".join(shown.partition("all nodes")[2].split())
    assert "FLOPs depends on samples bytes moved depends on samples" in total
    assert max(map(len, shown.splitlines())) <= 100
    assert "for numbers --dim samples=1" in total
    assert "depends on" not in smelt("inspect", model, "--dim", "samples=100").stdout


def test_weights_are_shown_by_size_and_listed(smelt, write, document):
    graph = f"{HEADER} g (float[B,4] x) => (float[B,4] y) <float[4] w = {{1,2,3,4}}, float one = {{1}}> {{ h = Add(x, w) y = Mul(h, one) }}"
    model = write(graph)
    assert "80.0%" in smelt("inspect", model).stdout
    assert smelt("inspect", model, "--list", "weights").stdout.splitlines() == [
        "w\tfloat[4]\t4\t16\t0.8",
        "one\tfloat[]\t1\t4\t0.2",
    ]
    listed = document(smelt("inspect", model, "--list", "nodes", "--dim", "B=2", "--json"))["list"]
    assert [(item["operator"], item["flops"], item["bytes"]) for item in listed] == [
        ("Add", 8, 80),
        ("Mul", 8, 68),
    ]


def test_a_list_has_one_line_each_whatever_names_say(smelt, tmp_path):
    model = onnx.parser.parse_model(f"{HEADER} g (float[2] x) => (float[2] y) {{ y = Relu(x) }}")
    model.graph.node[0].name = EVIL
    model.graph.name = EVIL
    path = tmp_path / "evil.onnx"
    onnx.save(model, path)
    [line] = smelt("inspect", path, "--list", "nodes").stdout.splitlines()
    assert line.split("\t")[:3] == ["a\\tb\\nc\\x1b[31m", "Relu", "float[2]"]
    assert "\x1b" not in smelt("inspect", path).stdout


def test_quantization_and_functions_are_shown(smelt, write):
    quantized = write(
        f"{HEADER} g (float[2,4] x) => (float[2,3] y) <float s = {{0.1}}, int8[4,3] w = {{1,2,3,4,5,6,7,8,9,10,11,12}}> {{ d = DequantizeLinear(w, s) y = MatMul(x, d) }}"
    )
    assert "weight-only, 8 bits" in smelt("inspect", quantized).stdout
    calls = write(
        """<ir_version: 8, opset_import: ["": 17, "f": 1]>
        g (float[B,4] x) => (float[B,4] y) { a = f.twice(x) y = f.twice(a) }
        <domain: "f", opset_import: ["": 17]> twice (x) => (y) { h = Exp(x) y = Add(h, x) }""",
        "calls.onnx",
    )
    shown = smelt("inspect", calls).stdout
    assert "f.twice  2 nodes  2 calls" in shown
    assert "FLOPs 16*B bytes moved" in " ".join(shown.split())


def test_sizes_that_nobody_gives_are_told(smelt, write):
    model = write(f"{HEADER} g (float[N,4] x) => (int64[2,k] y) {{ h = NonZero(x) y = Neg(h) }}")
    shown = smelt("inspect", model).stdout
    assert "k depends on values, of y[1]" in " ".join(shown.split())
    assert "_d0 unnamed sizes that the model computes" in " ".join(shown.split())


def test_nothing_to_show_is_shown(smelt, write, document):
    model = write(f"{HEADER} g () => () {{ }}")
    result = smelt("inspect", model)
    assert result.exit_code == 0, result.stderr
    assert "parameters 0 in 0 bytes" in result.stdout
    facts = document(smelt("inspect", model, "--json"))
    assert (facts["flops"], facts["longest_chains"], facts["symbols"]) == (0, [], [])
    assert smelt("inspect", model, "--list", "nodes").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--dim", "Q=1"], "E633"),
        (["--dim", "B=1,2"], "E636"),
        (["--dim", "B"], "E636"),
        (["--list", "nodes", "--snippet"], "E637"),
    ],
)
def test_wrong_arguments_are_refused(smelt, write, arguments, code):
    result = smelt("inspect", write(), *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(code)
    assert result.stdout == ""
    assert smelt("inspect", write(), "--list", "nonsense").exit_code == 2


EXPORTS = sorted((Path(__file__).parents[1] / "models").rglob("*.onnx"))


@pytest.mark.parametrize("model", EXPORTS, ids=lambda path: path.stem)
def test_an_export_is_readable_at_80_columns(smelt, model):
    # A name that is longer than its column stays whole, and makes its line longer.
    lines = smelt("inspect", model, COLUMNS="80").stdout.splitlines()
    assert len(lines) > 10
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_list_of_passes_fits_the_terminal(smelt, columns):
    lines = smelt("passes", COLUMNS=str(columns)).stdout.splitlines()
    assert max(map(len, lines)) <= columns
