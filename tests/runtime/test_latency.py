"""The latencies of all models are measured in one interleaved run."""

import itertools
from functools import partial

import numpy as np
import onnx_ir as ir
import pytest
from clocks import Clock, a_second_per_node

from smelt.runtime import latency
from smelt.runtime.latency import interleaved_timings, measure_latency


def test_one_median_a_model(monkeypatch: pytest.MonkeyPatch):
    header = '<ir_version: 10, opset_import: ["" : 20]>\n'
    small = ir.from_onnx_text(
        header + "g (float[64,64] x) => (float[64,64] y) { y = MatMul(x, x) }"
    )
    body = " ".join(f"x{i + 1} = MatMul(x{i}, x{i})" for i in range(40))
    large = ir.from_onnx_text(header + f"g (float[64,64] x0) => (float[64,64] x40) {{ {body} }}")
    values = [np.zeros((64, 64), np.float32)]
    assert all(seconds > 0 for seconds in measure_latency([small, large], values, rounds=3))
    clock = a_second_per_node(monkeypatch)
    monkeypatch.setattr(latency, "interleaved_timings", partial(interleaved_timings, clock=clock))
    assert measure_latency([small, large], values, rounds=9) == [1, 40]


def test_each_round_runs_each_once_and_every_other_one_backwards():
    order: list[str] = []
    runs = [partial(order.append, "a"), partial(order.append, "b")]
    interleaved_timings(runs, rounds=3, clock=Clock())
    assert "".join(order) == "aabb" + "ab" + "ba" + "ab"


def test_the_interval_of_the_ratio_is_that_of_order_statistics():
    clock = Clock()
    pace = itertools.cycle([2.0, 2.5, 1.5, 3.0])

    def uneven():
        clock.now += next(pace)

    timings = interleaved_timings([clock.taking(1.0), uneven], rounds=12, clock=clock)
    assert timings[0].interval == (1, 1)
    assert not timings[0].differs
    assert timings[1].interval == (1.5, 3)  # the third smallest and the third largest of twelve
    assert timings[1].ratio == 2.25
    assert timings[1].differs
    assert (timings[1].minimum, timings[1].median) == (1.5, 2.25)


def test_too_few_rounds_tell_nothing():
    clock = Clock()
    [_, timing] = interleaved_timings([clock.taking(1.0), clock.taking(2.0)], rounds=3, clock=clock)
    assert timing.interval is None
    assert timing.differs is None
    assert len(timing.seconds) == 3


def test_a_run_shorter_than_a_tick_of_the_clock_has_a_ratio():
    clock = Clock()
    [first, second] = interleaved_timings([lambda: None, clock.taking(1.0)], rounds=3, clock=clock)
    assert first.minimum == 1e-9
    assert second.ratio == pytest.approx(1e9)
