"""Runs whose operands do not fit together end with an error, and read nothing beyond their inputs.

A C program gives each model inputs in memory of exactly their sizes, under the sanitizers of gcc.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import smelt
from smelt.ir import text
from smelt.runtime.c_library import ERROR_SIZE

SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DSMELT_NO_DISPATCH")


@dataclass(frozen=True)
class Disagreeing:
    """A graph, sizes of a run that has a result, and sizes of runs that have none."""

    graph: str
    right: dict[str, int]
    wrong: tuple[dict[str, int], ...]


def branch(then: str, inputs: str) -> str:
    """Return a model that computes ``t`` as in ``then`` if ``c`` is true."""
    return (
        f"g (bool c, {inputs}) => (float[2] y) {{ y = If (c) "
        f"<then_branch = a () => (float[2] t) {{ {then} }}, "
        "else_branch = b () => (float[2] e) { e = Constant<value_floats=[0.0,0.0]>() }> }"
    )


MODELS = {
    "rows side by side": Disagreeing(
        branch(
            "k = Constant<value_ints=[1]>() a = Concat<axis=0>(x, z) t = ReduceSum<keepdims=0>(a, k)",
            "float[1,N] x, float[1,M] z",
        ),
        {"N": 2, "M": 2},
        ({"N": 4, "M": 3}, {"N": 3, "M": 4}),
    ),
    "product in a branch": Disagreeing(
        branch("t = MatMul(x, z)", "float[2,N] x, float[M] z"),
        {"N": 4, "M": 4},
        ({"N": 4, "M": 3}, {"N": 4, "M": 5}),
    ),
    "parts in a branch": Disagreeing(
        branch("s = Constant<value_ints=[2,3]>() t, r = Split(x, s)", "float[N] x"),
        {"N": 5},
        ({"N": 4}, {"N": 6}, {"N": 2}),
    ),
    "parts": Disagreeing(
        "g (float[N] x) => (float[2] a, float[2] b, float[1] y) "
        "{ s = Constant<value_ints=[2,2,1]>() a, b, y = Split(x, s) }",
        {"N": 5},
        ({"N": 6}, {"N": 4}, {"N": 2}),
    ),
    "rows in a loop": Disagreeing(
        "g (int64 n, float[2] z, float[N] x) => (float[2] y) { t = Constant<value=bool {1}>() "
        "y = Loop(n, t, z) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) "
        "{ d = Identity(c) s = Constant<value_ints=[2]>() r = Reshape(x, s) w = Add(v, r) }> }",
        {"N": 2},
        ({"N": 3}, {"N": 5}),
    ),
    "a branch in a loop": Disagreeing(
        "g (int64 n, bool k, float[2] z, float[2,N] x, float[M] u) => (float[2] y) "
        "{ t = Constant<value=bool {1}>() y = Loop(n, t, z) "
        "<body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) { d = Identity(c) "
        "w = If (k) <then_branch = p () => (float[2] q) { q = MatMul(x, u) }, "
        "else_branch = o () => (float[2] e) { e = Identity(v) }> }> }",
        {"N": 4, "M": 4},
        ({"N": 4, "M": 3},),
    ),
    "rows of a scan": Disagreeing(
        "g (float s, float[N] x, float[M] z) => (float f, float[K] y) "
        "{ f, y = Scan<num_scan_inputs=2, body = b (float v, float p, float q) => (float w, float r) "
        "{ r = Mul(p, q) w = Add(v, r) }>(s, x, z) }",
        {"N": 4, "M": 4},
        ({"N": 4, "M": 3}, {"N": 3, "M": 4}),
    ),
    "channels": Disagreeing(
        "g (float[1,N,4] x, float[M] s, float[N] b, float[N] m, float[N] v) => (float[1,N,4] y) "
        "{ y = BatchNormalization(x, s, b, m, v) }",
        {"N": 3, "M": 3},
        ({"N": 4, "M": 3}, {"N": 3, "M": 4}),
    ),
    "scales": Disagreeing(
        "g (float[2,N] x, float[M] s) => (uint8[2,N] y) { y = QuantizeLinear<axis=1>(x, s) }",
        {"N": 3, "M": 3},
        ({"N": 4, "M": 3},),
    ),
    "weights of a recurrence": Disagreeing(
        "g (float[3,1,N] x, float[1,M,2] w, float[1,4,4] r) => (float[3,1,1,4] y) "
        "{ y = RNN<hidden_size=4>(x, w, r) }",
        {"N": 2, "M": 4},
        ({"N": 3, "M": 4}, {"N": 2, "M": 3}, {"N": 4, "M": 5}),
    ),
    "boxes": Disagreeing(
        "g (float[1,N,4] x, float[1,1,M] s) => (int64[C,3] y) "
        "{ m = Constant<value_ints=[2]>() y = NonMaxSuppression(x, s, m) }",
        {"N": 3, "M": 3},
        ({"N": 2, "M": 3}, {"N": 3, "M": 2}),
    ),
}
BOUNDS = dict.fromkeys("NMKC", (2, 9))
BYTES = {"FLOAT": 4, "INT64": 8, "BOOL": 1, "UINT8": 1}


def program_of(name: str, function: str) -> tuple[dict[str, bytes], str]:
    """Return the files of a model, and the lines of C that call it at each of its sizes."""
    case = MODELS[name]
    model = text.parse(case.graph, 21)
    used = {str(d) for v in (*model.graph.inputs, *model.graph.outputs) for d in v.shape or ()}
    dims = {dim: ends for dim, ends in BOUNDS.items() if dim in used}
    artifact = smelt.compile(model, target="c", name=function, dims=dims)
    program = artifact.plan.steps
    lines = []
    for status, sizes in [(0, case.right), *((ERROR_SIZE, wrong) for wrong in case.wrong)]:
        calls = []
        for value in artifact.model.graph.inputs:
            count = BYTES[value.dtype.name]
            for dim in value.shape:
                count *= dim if isinstance(dim, int) else sizes[str(dim)]
            calls.append(f"given({count}, {int(value.dtype.name != 'FLOAT')})")
        most = [program.slots[number].most_bytes for number in program.outputs]
        told = ", ".join(str(sizes[each.name]) for each in program.input_sizes)
        lines += [
            f"  {{ const void *in[] = {{ {', '.join(calls)} }};",
            f"    void *out[] = {{ {', '.join(f'malloc({n})' for n in most)} }};",
            f"    ptrdiff_t sizes[] = {{ {told} }}, lengths[{len(program.returned_sizes) + 1}];",
            f"    if ({function}_run(in, out, arena, sizes{', lengths' * bool(program.returned_sizes)}) "
            f'!= {status}) puts("{name} {sizes}"); (void)lengths; }}',
        ]
    return artifact.files, "\n".join(lines)


def test_a_run_that_has_no_result_reads_nothing_beyond_its_inputs(tmp_path: Path) -> None:
    bodies, headers = [], []
    for number, name in enumerate(MODELS):
        files, body = program_of(name, f"m{number}")
        for file, data in files.items():
            (tmp_path / file).write_bytes(data)
        headers.append(f'#include "m{number}.h"')
        bodies.append(body)
    main = [
        "#include <stddef.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>",
        *headers,
        "static void *given(size_t size, int value) { unsigned char *p = calloc(size, 1); "
        "if (value) p[0] = 1; return p; }",
        "int main(void) { static _Alignas(64) unsigned char arena[65536];",
        *bodies,
        "  return 0; }",
    ]
    (tmp_path / "main.c").write_text("\n".join(main))
    build = ["gcc", "-std=c11", "-O1", *SANITIZED, "-o", "run", "main.c"]
    build += [file.name for file in tmp_path.glob("m[0-9]*.[cS]")] + ["-lm"]
    subprocess.run(build, cwd=tmp_path, check=True, timeout=300)
    done = subprocess.run(
        ["./run"],
        cwd=tmp_path,
        env={"ASAN_OPTIONS": "detect_leaks=0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.stdout, done.stderr[:2000], done.returncode) == ("", "", 0)
