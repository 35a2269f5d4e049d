"""The table that ``smelt optimize`` prints by default, and what ``--quiet`` leaves of it."""

from __future__ import annotations

from collections import Counter

import onnx_ir as ir
from small_models import MODEL

from smelt.cli.summary import SHOWN, Snapshot, snapshot, summary
from smelt.ir import text

TWICE = MODEL.replace("Relu(h)", "Identity(h)")


def rows(text: str) -> dict[str, tuple[str, ...]]:
    """The cells of each line by its first words."""
    lines = [line.rsplit(maxsplit=2) for line in text.splitlines()[1:]]
    return {name.strip(): tuple(cells) for name, *cells in lines}


def test_operators_that_changed_most_come_first_and_the_others_are_one_row():
    before = Snapshot(Counter({f"Op{i}": 10 + i for i in range(SHOWN + 2)} | {"Same": 3}), 8_000)
    after = Snapshot(Counter({"Same": 3, "New": 1}), 4)
    found = rows(summary(before, after, "-", "-"))
    assert list(found)[:SHOWN] == [f"Op{i}" for i in reversed(range(2, SHOWN + 2))]
    assert found["3 other operators"] == ("21", "1")
    assert found["all nodes"] == (f"{before.nodes}", "4")
    assert found["weights, bytes"] == ("8,000", "4")
    assert "Same" not in found
    assert "file, bytes" not in found


def test_an_initializer_without_a_tensor_weighs_nothing():
    model = text.parse("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }", 18)
    model.graph.initializers.add(ir.Value(name="declared"))
    assert snapshot(model).weights == 8


def test_optimize_prints_the_table_and_the_interface(smelt, write, tmp_path):
    source, result = write(TWICE), tmp_path / "out.onnx"
    told = smelt("optimize", source, "-o", result)
    found = rows(told.stderr.partition("became")[2])
    assert found["Identity"] == ("2", "0")
    assert found["all nodes"] == ("3", "1")
    assert found["file, bytes"] == tuple(f"{path.stat().st_size:,}" for path in (source, result))
    assert "opset, inputs and outputs: unchanged" in told.stderr


def test_quiet_leaves_errors_only(smelt, write, tmp_path):
    out = tmp_path / "out.onnx"
    assert smelt("optimize", write(), "-o", out, "--quiet", "--verify", "final").stderr == ""
    assert (
        "there is no pass"
        in smelt("optimize", write(), "-o", out, "--quiet", "--pipeline=nope").stderr
    )


def test_names_of_other_compilers_are_known(smelt, write, tmp_path):
    out = tmp_path / "out.onnx"
    told = smelt("optimize", write(TWICE), "-o", out, "--pipeline", "cse,dce,constant-folding,O1")
    assert told.exit_code == 0, told.stderr
    assert smelt("explain", "cse").stdout.startswith("remove-redundant-ops")
    assert "'cse'" in smelt("optimize", write(), "-o", out, "--pipeline", "cxe").stderr
