"""``threads=``: kernels in shards, which a caller may compute in parallel."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_library import compile_c, random_inputs, with_constants

from smelt.errors import UsageError
from smelt.ir import text
from smelt.targets.base import Artifact

KERNELS = {
    "convolution": """g (float[1,8,32,32] x, float[32,8,3,3] w, float[32] b) => (float y) {
        y = Conv<pads=[1,1,1,1]>(x, w, b) }""",
    "few pixels": """g (float[1,64,8,8] x, float[96,64,3,3] w) => (float y) {
        y = Conv<pads=[1,1,1,1]>(x, w) }""",
    "pointwise": """g (float[1,16,25,25] x, float[40,16,1,1] w, float[1,40,25,25] r) => (float y) {
        s = Conv(x, w)
        y = Add(s, r) }""",
    "depthwise": """g (float[1,96,40,41] x, float[96,1,3,3] w) => (float y) {
        z = Relu(x)
        y = Conv<group=96, pads=[1,1,1,1], strides=[2,2]>(z, w) }""",
    "columns": "g (float[7,130] x, float[130,400] w) => (float y) { y = MatMul(x, w) }",
    "rows": "g (float[301,64] x, float[64,24] w) => (float y) { y = MatMul(x, w) }",
    "batch": """g (float[7,40,32] x, float[7,50,32] w) => (float y) {
        t = Transpose<perm=[0,2,1]>(w)
        s = MatMul(x, t)
        y = Softmax(s) }""",
    "elements": """g (float[3,211,101] x, float[211,1] w) => (float y) {
        s = Mul(x, w)
        e = Exp(s)
        y = Sub(e, x) }""",
    "norm": """g (float[211,301] x, float[301] w) => (float y) {
        n = LayerNormalization(x, w)
        y = Softmax<axis=0>(n) }""",
    "integers": "g (int32[65537] x, int32[65537] w) => (int32 y) { y = Add(x, w) }",
}


def compiled(graph: str, **options: object) -> Artifact:
    return compile_c(with_constants(graph, 23, "w b"), **options)


@pytest.mark.parametrize("graph", KERNELS.values(), ids=KERNELS)
def test_bits_are_those_of_one_thread(graph: str) -> None:
    inputs = random_inputs(with_constants(graph, 23, "w b"), seed=3)
    one, three = compiled(graph), compiled(graph, threads=3)
    assert b"model_share(&task, part_of_" in three.files["model.c"]
    assert b"model_share" not in one.files["model.c"]
    for a, b in zip(one(*inputs), three(*inputs), strict=True):
        assert a.tobytes() == b.tobytes()


def test_little_work_is_not_shared() -> None:
    artifact = compiled("g (float[64] x) => (float y) { y = Relu(x) }", threads=2)
    assert b"model_share" not in artifact.files["model.c"]
    assert b"model_run_parallel" in artifact.files["model.h"]


def test_each_part_has_scratch_space_of_its_own() -> None:
    graph = KERNELS["depthwise"]
    one, three = (compiled(graph, threads=n).plan.memory.scratch_bytes for n in (1, 3))
    assert 3 * one <= three <= 3 * (one + 64)


TWO = """g (float[1,8,32,32] x, float[32,8,3,3] w, float[32] b) => (float y) {
    first = Conv<pads=[1,1,1,1]>(x, w, b)
    small = AveragePool<kernel_shape=[4,4], strides=[4,4]>(first)
    y = Softmax(small) }"""


def test_an_arena_for_one_thread_suffices_for_several() -> None:
    """A convolution is not sharded if its shards have no room for scratch space."""
    inputs = random_inputs(with_constants(TWO, 23, "w b"), seed=3)
    one, free = compiled(TWO), compiled(TWO, threads=4)
    least, most = one.plan.facts["arena_bytes"], free.plan.facts["arena_bytes"]
    assert least < most
    for limit, uncut in ((most, 0), (most - 1, 1), (least, 1)):
        tight = compiled(TWO, threads=4, arena=limit)
        assert tight.plan.facts["arena_bytes"] <= limit
        assert tight.plan.facts["steps_in_one_part"] == uncut
        assert tight.plan.facts["bands"] == 1
        assert tight(*inputs)[0].tobytes() == one(*inputs)[0].tobytes()


def test_the_number_of_threads_is_checked() -> None:
    with pytest.raises(UsageError, match=r"E660.*threads=0"):
        compiled("g (float[64] x) => (float y) { y = Relu(x) }", threads=0)


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["hex", "bin"])
def test_the_example_runs_parts_by_threads_that_do_not_race(tmp_path: Path, weights: str) -> None:
    graph = """g (float[1,24,32,32] x, float[24,1,3,3] w, float[48,24,3,3] v, float[64,8] u)
        => (float y) {
        d = Conv<group=24, pads=[1,1,1,1]>(x, w)
        c = Conv<pads=[1,1,1,1]>(d, v)
        e = Exp(c)
        shape = Constant<value_ints=[-1, 64]>()
        r = Reshape(e, shape)
        m = MatMul(r, u)
        y = Softmax(m) }"""
    model = with_constants(graph, 23, "w v u")
    artifact = compile_c(model, threads=3, project="main", weights=weights)
    for name, data in artifact.files.items():
        (tmp_path / name).write_bytes(data)
    flags = ["-std=c99", "-O1", "-g", "-fsanitize=thread", "-Wall", "-Wextra", "-Wshadow"]
    flags += ["-Wconversion", "-Werror", "-DSMELT_NO_DISPATCH"]
    sources = sorted(name for name in artifact.files if name.endswith(".c"))
    command = ["gcc", *flags, *sources, "-o", "run", "-lm", "-lpthread"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./run"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    numbers = np.array([float(word) for word in done.stdout.split(":")[1].split()])
    np.testing.assert_allclose(numbers.sum(), 1, rtol=1e-4)


def test_a_graph_of_text_compiles_as_cpp_and_c(tmp_path: Path) -> None:
    artifact = compile_c(text.parse(KERNELS["elements"], 23), threads=2, project="main")
    for name, data in artifact.files.items():
        (tmp_path / name).write_bytes(data)
    for command in (["gcc", "-std=c99"], ["g++", "-std=c++11", "-x", "c++"]):
        flags = ["-O1", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
        subprocess.run([*command, *flags, "-Wconversion", "model.c"], cwd=tmp_path, check=True)
