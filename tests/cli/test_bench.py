"""``smelt bench``: by turns, on the same inputs, and no difference where there is only noise."""

import json
import sys
from functools import partial

import numpy as np
import pytest
from clocks import a_second_per_node
from small_models import HEADER, MODEL

from smelt import benchmark
from smelt.runtime.latency import interleaved_timings

_STEPS = " ".join(f"h{i} = Erf(h{i - 1})" for i in range(1, 300))
SLOW = HEADER + f"g (float[B,4] h0) => (float[B,4] h299) {{ {_STEPS} }}"


def test_the_slower_one_is_named_and_equals_are_noise(smelt, write, document, monkeypatch):
    clock = a_second_per_node(monkeypatch)
    monkeypatch.setattr(benchmark, "interleaved_timings", partial(interleaved_timings, clock=clock))
    quick, slow = write(MODEL), write(SLOW, "slow.onnx")
    options = ("--dim", "B=32", "--runs", "40")
    report = document(smelt("bench", quick, slow, quick, *options, "--json"))
    assert (report["rounds"], report["sizes"]) == (40, {"B": 32})
    first, second, third = report["candidates"]
    assert first["ratio"] == 1
    assert first["differs"] is False
    assert second["differs"] is True
    assert second["ratio"] > 2
    assert (third["ratio"], third["differs"]) == (1, False)
    assert all(len(each["seconds"]) == 40 for each in report["candidates"])
    shown = smelt("bench", quick, slow, *options)
    assert shown.exit_code == 0, shown.stderr
    assert "slower than the first" in shown.stdout
    assert "40 rounds at B=32, 1 thread" in shown.stderr


def test_targets_and_folders_take_turns_with_their_model(smelt, write, tmp_path, document):
    model, folder = write(MODEL), tmp_path / "out"
    assert smelt("compile", model, "--target", "c", "--dim", "B=2", "-o", folder).exit_code == 0
    report = document(smelt("bench", f"{model}@host", model, folder, "--runs", "3", "--json"))
    assert report["sizes"] == {"B": 2}
    names = [each["name"] for each in report["candidates"]]
    assert names == [f"{model}@host", str(model), str(folder)]
    assert all(each["differs"] is None for each in report["candidates"])
    both = smelt("bench", model, "--target", "host", "--target", "onnx", "--runs", "3", "--json")
    assert [each["name"].rpartition("@")[2] for each in document(both)["candidates"]] == [
        "host",
        "onnx",
    ]


def test_functions_are_timed_on_arrays(smelt, write, tmp_path, monkeypatch, document):
    (tmp_path / "timed.py").write_text("import numpy as np\n\n\ndef f(x):\n    return np.exp(x)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    np.save("x.npy", np.ones((2, 4), np.float32))
    report = document(smelt("bench", "timed:f", "--input", "x.npy", "--runs", "2", "--json"))
    assert report["rounds"] == 2
    mixed = smelt("bench", "timed:f", write(MODEL), "--input", "x.npy", "--runs", "2", "--json")
    assert document(mixed)["sizes"] == {"B": 2}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("{m}@nothing",), "E611"),
        (("{m}@c", "--target", "host"), "E637"),
        (("{m}", "{o}"), "E632"),
        (("-", "-"), "E637"),
        (("{m}", "--dim", "Q=2"), "E633"),
        (("{m}", "--input", "q=zeros"), "E632"),
    ],
)
def test_models_that_cannot_be_compared_are_refused(smelt, write, arguments, code):
    other = HEADER + "g (float[B,4] x, float[B,4] z) => (float[B,4] y) { y = Add(x, z) }"
    places = {"m": write(MODEL), "o": write(other, "o.onnx")}
    result = smelt("bench", *(each.format(**places) for each in arguments), "--runs", "1")
    assert (result.exit_code, result.stderr[:4]) == (2, code)


def test_kernels_of_a_folder_are_timed_into_its_report(smelt, write, tmp_path, document):
    folder = tmp_path / "out"
    options = ("--target", "c", "--dim", "B=2", "--option", "profile=true", "-o", folder)
    assert smelt("compile", write(MODEL), *options).exit_code == 0
    shown = smelt("bench", folder, "--kernels", "--runs", "2")
    assert shown.stdout.splitlines()[0].split() == [
        *("step", "kernel", "node", "us", "share", "MMAC", "KB", "GMAC/s")
    ]
    report = document(smelt("bench", folder, "--kernels", "--runs", "2", "--json"))
    assert report == json.loads((folder / "report.json").read_bytes())
    assert report["seconds"] == pytest.approx(sum(each["seconds"] for each in report["kernels"]))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("{model}", "--kernels"), "is not a folder"),
        (("{model}", "{model}", "--kernels"), "smelt bench FOLDER --kernels"),
        (("{model}", "--target", "c", "--kernels"), "--kernels is given with --target"),
    ],
)
def test_kernels_are_those_of_one_folder(smelt, write, arguments, told):
    model = write(MODEL)
    result = smelt("bench", *(each.format(model=model) for each in arguments))
    assert result.exit_code == 2
    assert told in result.stderr
