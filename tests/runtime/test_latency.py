"""Latency is measured for all models in one run."""

import time

import numpy as np
import onnx_ir as ir

from smelt.runtime.latency import measure_latency, take_turns


def test_one_median_a_model_and_the_larger_model_is_slower():
    header = '<ir_version: 10, opset_import: ["" : 20]>\n'
    small = ir.from_onnx_text(
        header + "g (float[64,64] x) => (float[64,64] y) { y = MatMul(x, x) }"
    )
    body = " ".join(f"x{i + 1} = MatMul(x{i}, x{i})" for i in range(40))
    large = ir.from_onnx_text(header + f"g (float[64,64] x0) => (float[64,64] x40) {{ {body} }}")
    quick, slow = measure_latency([small, large], [np.zeros((64, 64), np.float32)], rounds=9)
    assert 0 < quick < slow


def test_the_interval_of_the_ratio_is_that_of_order_statistics():
    timings = take_turns([lambda: time.sleep(0.0002), lambda: time.sleep(0.002)], rounds=12)
    assert timings[0].interval == (1, 1)
    assert not timings[0].differs
    low, high = timings[1].interval
    assert 1 < low <= timings[1].ratio <= high
    assert timings[1].differs
    assert timings[1].minimum <= timings[1].median


def test_too_few_rounds_tell_nothing():
    [_, timing] = take_turns([lambda: None, lambda: time.sleep(0.001)], rounds=3)
    assert timing.interval is None
    assert timing.differs is None
    assert len(timing.seconds) == 3
