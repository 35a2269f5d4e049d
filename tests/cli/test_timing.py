"""``--timing`` and ``--trace``: where the time of a command went."""

import json

import pytest

COMPLETE = {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"}


def events(path):
    """The complete events of a trace, in order of time, after a check of the format."""
    document = json.loads(path.read_text())
    assert document["displayTimeUnit"] == "ms"
    named = [each for each in document["traceEvents"] if each["ph"] == "M"]
    complete = [each for each in document["traceEvents"] if each["ph"] == "X"]
    assert len(named) + len(complete) == len(document["traceEvents"])
    assert {each["name"] for each in named} == {"process_name", "thread_name"}
    assert {each["tid"] for each in complete} <= {each["tid"] for each in named}
    for each in complete:
        assert set(each) == COMPLETE
        assert each["ts"] >= 0
        assert each["dur"] >= 0
    assert [each["ts"] for each in complete] == sorted(each["ts"] for each in complete)
    return complete


def table(result):
    """The rows of the table by their first column, which is indented by depth."""
    lines = result.stderr.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("phase"))
    end = next(index for index, line in enumerate(lines) if line.startswith("total"))
    return lines[start + 1 : end + 1]


def test_optimize_shows_phases_and_passes_the_longest_first(smelt, write, tmp_path):
    result = smelt("optimize", write(), "-o", tmp_path / "out.onnx", "--timing")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    rows = table(result)
    phases = [row.split("  ")[0] for row in rows if not row.startswith(" ")]
    once = {"import passes"}
    assert set(phases) - once == {"load", "optimize", "save", "everything else", "total"}
    [rest] = [row for row in rows if row.startswith("everything else")]
    assert rest.split()[-1] == "1"
    within = [row for row in rows if row.startswith("  ")]
    assert sum("elimination" in row for row in within) > 2
    assert any(" others " in row for row in within)


def test_the_document_holds_every_pass_and_the_parts_add_up(smelt, write, tmp_path, document):
    result = smelt("optimize", write(), "-o", tmp_path / "out.onnx", "--timing", "--json")
    assert result.stderr == ""
    timing = document(result)["timing"]
    assert sum(phase["seconds"] for phase in timing["phases"]) <= timing["seconds"]
    [whole] = [phase for phase in timing["phases"] if phase["name"] == "optimize"]
    assert whole["nodes"] == [3, 2]
    passes = [part for part in whole["parts"] if part["category"] == "pass"]
    assert len(passes) > 60
    assert "divide-to-multiply" in {part["name"] for part in passes}
    for parts in (timing["phases"], whole["parts"]):
        took = [part["seconds"] for part in parts]
        assert took == sorted(took, reverse=True)


def test_without_the_option_nothing_of_time_is_told(smelt, write, tmp_path, document):
    result = smelt("optimize", write(), "-o", tmp_path / "out.onnx", "--json")
    assert "timing" not in document(result)
    assert "ms" not in smelt("optimize", write(), "-o", tmp_path / "out.onnx").stderr


@pytest.mark.parametrize(
    ("arguments", "phases"),
    [
        (("optimize", "M", "-o", "out.onnx", "--verify", "final"), {"load", "optimize", "save"}),
        (("compile", "M", "--target", "c", "--dim", "B=1", "-o", "out"), {"emit", "allocate"}),
        (("verify", "M", "M"), {"load", "open", "run", "measure rounding", "compare"}),
        (
            ("convert", "jax.numpy:sin", "--input", "f32[3]", "-o", "out.onnx"),
            {"trace", "jaxpr", "lower", "optimize", "emit", "save"},
        ),
    ],
    ids=lambda item: item[0] if isinstance(item, tuple) else "",
)
def test_every_command_that_compiles_writes_a_trace(
    smelt, write, tmp_path, monkeypatch, arguments, phases
):
    monkeypatch.chdir(tmp_path)
    model = write()
    given = [model if item == "M" else item for item in arguments]
    result = smelt(*given, "--trace", "trace.json", "--timing")
    assert result.exit_code == 0, result.stderr
    assert phases <= {each["name"] for each in events(tmp_path / "trace.json")}
    assert table(result)


def test_events_nest_within_their_thread(smelt, write, tmp_path):
    smelt("optimize", write(), "-o", tmp_path / "out.onnx", "--trace", tmp_path / "t.json")
    open_until = []
    for each in events(tmp_path / "t.json"):
        while open_until and open_until[-1] <= each["ts"]:
            open_until.pop()
        end = each["ts"] + each["dur"]
        assert not open_until or end <= open_until[-1] + 1
        open_until.append(end)


def test_a_command_that_fails_leaves_its_trace_and_its_table(smelt, tmp_path):
    model = tmp_path / "broken.onnx"
    model.write_bytes(b"no model")
    trace = tmp_path / "t.json"
    result = smelt("optimize", model, "-o", tmp_path / "o.onnx", "--trace", trace, "--timing")
    assert result.exit_code == 3
    assert "E301" in result.stderr
    assert [row.split()[0] for row in table(result)][-1] == "total"
    assert {each["name"]: each["args"].get("error") for each in events(trace)} == {
        "load": "E301",
        "read": "E301",
    }


@pytest.mark.parametrize(
    ("trace", "code"), [("-", "E637"), ("no/such/t.json", "E614"), (".", "E614")]
)
def test_a_trace_that_cannot_be_written_is_refused_before_the_work(
    smelt, write, tmp_path, monkeypatch, trace, code
):
    monkeypatch.chdir(tmp_path)
    result = smelt("optimize", write(), "-o", "out.onnx", "--trace", trace)
    assert (result.exit_code, result.stderr[:4]) == (2, code)
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("taken", ["m.onnx", "out.onnx", "./sub/../out.onnx"])
def test_a_trace_takes_no_place_of_a_model(smelt, write, tmp_path, monkeypatch, taken):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    before = write().read_bytes()
    result = smelt("optimize", "m.onnx", "-o", "out.onnx", "--trace", taken)
    assert (result.exit_code, result.stderr[:4]) == (2, "E637")
    assert (tmp_path / "m.onnx").read_bytes() == before
    assert not (tmp_path / "out.onnx").exists()


def test_a_full_disk_loses_the_trace_and_not_the_model(smelt, write, tmp_path):
    result = smelt("optimize", write(), "-o", tmp_path / "out.onnx", "--trace", "/dev/full")
    assert result.exit_code == 5
    assert "E505 cannot write '/dev/full': the disk is full" in result.stderr
    assert (tmp_path / "out.onnx").exists()


def test_a_failed_trace_does_not_hide_the_error(smelt, tmp_path):
    result = smelt(
        "optimize", tmp_path / "none.onnx", "-o", tmp_path / "o.onnx", "--trace", "/dev/full"
    )
    assert result.exit_code == 2
    assert "no trace: cannot write '/dev/full'" in result.stderr
    assert "E609" in result.stderr


def test_a_hostile_file_name_is_only_text(smelt, tmp_path, write):
    path = write(name='"}]<script>\n.onnx')
    smelt("optimize", path, "-o", tmp_path / "o.onnx", "--trace", tmp_path / "t.json")
    [load] = [each for each in events(tmp_path / "t.json") if each["name"] == "load"]
    assert load["args"]["file"] == str(path)
