"""How the option ``cpu`` changes the text, and that all texts compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import compile_text, random_inputs
from c_programs import CNN

from smelt.ir import text
from smelt.targets.c.cpus import CPUS

LANES = {"cortex-m0": "1", "cortex-m4": "1", "cortex-m55": "4", "rv32": "1"}


def _source(cpu: str) -> str:
    return compile_text(CNN, cpu=cpu).files["model.c"].decode()


@pytest.mark.parametrize("cpu", ["native", *LANES])
def test_only_generic_code_is_there_twice(cpu: str) -> None:
    assert "__builtin_cpu_supports" in _source("generic")
    assert "__builtin_cpu_supports" not in _source(cpu)


@pytest.mark.parametrize("cpu", LANES)
def test_vectors_are_as_wide_as_those_of_the_cpu(cpu: str) -> None:
    assert f"#define LANES {LANES[cpu]}\n" in _source(cpu).split("typedef")[0]
    assert "#if defined(__GNUC__) && !defined(LANES)" not in _source("native")


@pytest.mark.parametrize("cpu", CPUS)
def test_the_arena_begins_where_the_cpu_wants_it(cpu: str) -> None:
    plan = compile_text(CNN, cpu=cpu).plan.memory
    assert plan.alignment == CPUS[cpu].alignment
    assert compile_text(CNN, cpu=cpu, alignment=128).plan.memory.alignment == 128


def test_a_small_alignment_wastes_less() -> None:
    body = "a = Softmax(x) b = MatMul(x, w) c = MatMul(a, w) y = Mul(b, c)"
    graph = f"g (float[1,3] x, float[3,3] w) => (float[1,3] y) {{ {body} }}"
    arenas = [compile_text(graph, cpu=cpu).plan.memory.arena_bytes for cpu in ("rv32", "generic")]
    assert arenas[0] < arenas[1]


def test_four_lanes_agree_with_those_of_this_machine() -> None:
    inputs = random_inputs(text.parse(CNN))
    results = [compile_text(CNN, cpu=cpu)(*inputs)[0] for cpu in ("cortex-m4", "cortex-m55")]
    want = compile_text(CNN, cpu="native")(*inputs)[0]
    for got in results:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
