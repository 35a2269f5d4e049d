"""A compiled program is stored if all its sizes are polynomials of the sizes of its inputs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_models import HEADER

import smelt
from smelt.ir import text
from smelt.runtime.jit.open_caller import OpenCaller
from smelt.runtime.jit.stored_program import StoredProgram
from smelt.targets.host.stored import taken_program

SUM = (
    "g (float[N,3] x, float[M,3] y) => (float[T,3] z, int64[1] n) {"
    " z = Concat<axis=0>(x, y) n = Shape<end=1>(z) }"
)
HALF = "g (float[N] x) => (float[M] y) <int64[1] a = {0}, int64[1] b = {-1}, int64[1] two = {2}>"
HALF += " { n = Shape(x) h = Div(n, two) y = Slice(x, a, h, a) }"


def compiled(body, shapes):
    """The artifact, compiled for ``shapes`` or fewer elements, and its program of open sizes."""
    artifact = smelt.compile(text.parse(HEADER + body), target="host", engine="native")
    runner = artifact.opened()
    runner.compiled.compile_for(*shapes)
    return artifact, runner.compiled.open_caller


def test_a_program_gives_the_same_from_a_document():
    artifact, caller = compiled(SUM, [((0, 3), (0, 3)), ((9, 3), (9, 3))])
    taken = taken_program(artifact.model, caller)
    document = json.loads(json.dumps(taken.program.to_json()))
    read = StoredProgram.from_json(document).caller(caller.library, taken.weights, threads=1)
    assert isinstance(read, OpenCaller)
    for n, m in ((1, 2), (0, 4), (16, 9)):
        arrays = np.random.rand(n, 3).astype("f"), np.random.rand(m, 3).astype("f")
        for found, expected in zip(read(*arrays), artifact(*arrays), strict=True):
            np.testing.assert_array_equal(found, expected)
    assert not read.takes(((17, 3), (1, 3)))


def test_other_sizes_are_not_stored():
    artifact, caller = compiled(HALF, [((9,),)])
    assert caller is not None
    assert taken_program(artifact.model, caller) is None


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_without_a_compiled_program(engine):
    artifact = smelt.compile(text.parse(HEADER + SUM), target="host", engine=engine)
    assert taken_program(artifact.model, None) is None
