"""What phases say of themselves to whoever records them."""

import contextvars
import functools
import threading
import time

import onnx
import pytest
from small_models import MODEL

import smelt
from smelt.errors import UsageError
from smelt.spans import recording, span

PROTO = onnx.parser.parse_model(MODEL)


def names(recorder):
    return [each.name for _, each in recorder.walk()]


def test_spans_nest_and_last_as_long_as_their_body():
    with recording() as recorder:
        with span("outer", file="m.onnx") as told:
            with span("inner"):
                time.sleep(0.01)
            told.note(nodes=3)
        with span("later"):
            pass
    assert [(depth, each.name) for depth, each in recorder.walk()] == [
        (0, "outer"),
        (1, "inner"),
        (0, "later"),
    ]
    outer, inner, later = (each for _, each in recorder.walk())
    assert outer.args == {"file": "m.onnx", "nodes": 3}
    assert outer.seconds >= inner.seconds >= 0.01
    assert inner.cpu < inner.seconds
    assert recorder.origin <= outer.start <= inner.start < later.start


def test_nothing_is_kept_where_nobody_records():
    with recording() as recorder:
        pass
    with span("unheard", file="m.onnx") as told:
        told.note(nodes=3)
    assert recorder.spans == []
    assert span("one") is span("two")


def test_a_span_that_fails_says_what_ended_it_and_the_next_stands_beside_it():
    with recording() as recorder:
        with pytest.raises(UsageError), span("fails"):
            raise UsageError("E636", "no")
        with pytest.raises(ZeroDivisionError), span("breaks"):
            raise ZeroDivisionError
        with span("after"):
            pass
    assert [(each.name, each.args.get("error")) for each in recorder.spans] == [
        ("fails", "E636"),
        ("breaks", "ZeroDivisionError"),
        ("after", None),
    ]


def test_a_recording_within_another_is_heard_by_both():
    with recording() as outer:
        with span("whole"), recording() as inner, span("part"):
            pass
        with span("rest"):
            pass
    assert names(inner) == ["part"]
    assert names(outer) == ["whole", "part", "rest"]


def test_a_thread_is_heard_in_a_copy_of_the_context_and_has_its_own_number():
    def work():
        with span("elsewhere"):
            pass

    with recording() as recorder, span("here"):
        for target in (work, functools.partial(contextvars.copy_context().run, work)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
    here, elsewhere = (each for _, each in recorder.walk())
    assert (here.name, elsewhere.name) == ("here", "elsewhere")
    assert here.thread != elsewhere.thread


def test_optimizing_tells_its_phases_and_each_pass():
    with recording() as recorder:
        model = smelt.load(PROTO.SerializeToString())
        smelt.optimize(model, verify="final")
    found = names(recorder)
    for expected in ("load", "read", "check", "optimize", "shapes", "fixpoint", "verification"):
        assert expected in found
    runs = [each for _, each in recorder.walk() if each.category == "pass"]
    assert {each.args["text"] for each in runs} >= {"const-elimination", "dead-code-elimination"}
    for each in runs:
        assert each.args["nodes_after"] <= each.args["nodes_before"] <= len(PROTO.graph.node)
    [whole] = recorder.named("optimize")
    assert whole.args["nodes_after"] == runs[-1].args["nodes_after"]
    assert whole.seconds >= sum(each.seconds for each in runs)


def test_compiling_tells_the_phases_of_the_target():
    with recording() as recorder:
        smelt.compile(PROTO, target="c", dims={"B": 1})
    phases = [each.name for each in recorder.spans if not each.name.startswith("import")]
    assert phases == [
        *("load", "bind dims", "optimize"),
        *("select", "check limits", "schedule", "allocate", "emit"),
    ]
    assert all(each.args["target"] == "c" for each in recorder.spans[-5:])


def test_tracing_tells_what_jax_takes_and_what_lowering_takes():
    with recording() as recorder:
        smelt.trace(lambda x: x + 1, "f32[B,3]")
    [whole] = recorder.spans
    assert (whole.name, whole.args["nodes"]) == ("trace", 1)
    assert [each.name for each in whole.children] == ["import lowerings", "jaxpr", "lower"]


def test_unrecorded_spans_cost_next_to_nothing():
    began = time.perf_counter()
    for _ in range(10_000):
        with span("unheard", nodes=1):
            pass
    assert time.perf_counter() - began < 0.5
