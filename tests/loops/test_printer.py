"""The C of a nest: its text, and what it computes beside the interpreter."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path

import numpy as np
import onnx_ir as ir
from drawn_pools import context, image, random_window, tables

from smelt.loops.algorithm import Algorithm, Axis, Buffer, Load, Reduce, Stage
from smelt.loops.interpreter import numpy_type, run
from smelt.loops.lower import lower
from smelt.loops.operators import LARGEST, SUM
from smelt.loops.printer import print_nest
from smelt.loops.schedule import (
    ComputeAt,
    Doubling,
    Outermost,
    Schedule,
    Separate,
    Split,
    Unroll,
    Vector,
)
from smelt.native.emit.writer import Writer
from smelt.native.kernels.pool import max_pool, mean_or_norm_pool, variants
from smelt.native.types import C_TYPES
from smelt.program.run_sizes import Dim, Size
from smelt.runtime.c_library import build

FLOAT = C_TYPES[ir.DataType.FLOAT]
KERNELS = {"MaxPool": max_pool, "AveragePool": mean_or_norm_pool, "LpPool": mean_or_norm_pool}
DTYPES = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT8, ir.DataType.UINT16)


def row(extent: Dim, wide: Dim, kernel: int, step: int, begin: int) -> Algorithm:
    """The largest elements of windows of ``kernel`` columns of a row."""
    c, q, k = Axis("c", 2), Axis("q", wide), Axis("k", kernel)
    x, y = Buffer("x", FLOAT, (2, extent), outside=True), Buffer("y", FLOAT, (2, wide))
    load = Load(x, (c.at, q.at * step + k.at - begin))
    return Algorithm((Stage(y, (c, q), Reduce(LARGEST, (k,), load)),))


def printed(algorithm: Algorithm, schedule: Schedule = ()) -> str:
    body = Writer()
    print_nest(lower(algorithm, schedule), body)
    return body.text()


def test_the_text_without_a_schedule() -> None:
    assert (
        printed(row(9, 8, 3, 1, 0))
        == """\
for (ptrdiff_t c = 0; c < 2; ++c) {
    for (ptrdiff_t q = 0; q < 8; ++q) {
        const ptrdiff_t high_k = (3 < (-q + 9) ? 3 : (-q + 9));
        float a0 = (-INFINITY);
        for (ptrdiff_t k = 0; k < high_k; ++k) {
            const float v1 = x[c * 9 + k + q];
            a0 = v1 > a0 || v1 != v1 ? v1 : a0;
        }
        y[c * 8 + q] = a0;
    }
}
"""
    )


def test_the_text_of_a_separated_window() -> None:
    schedule = (Separate("k", "row", "x_"), Unroll("k"), ComputeAt("row", "c", 10))
    assert (
        printed(row(9, 8, 3, 1, 1), schedule)
        == """\
for (ptrdiff_t c = 0; c < 2; ++c) {
    float row[10];
    for (ptrdiff_t x_ = 0; x_ < 10; ++x_) {
        row[x_] = (-INFINITY);
    }
    for (ptrdiff_t x_ = 1; x_ < 10; ++x_) {
        const float v1 = x[c * 9 + x_ - 1];
        row[x_] = v1;
    }
    for (ptrdiff_t q = 0; q < 8; ++q) {
        const float v2 = row[q + 2];
        const float v3 = row[q + 1];
        const float v4 = row[q];
        const float v5 = v3 == v3 ? (v3 > v4 ? v3 : v4) : v3;
        y[c * 8 + q] = v2 == v2 ? (v2 > v5 ? v2 : v5) : v2;
    }
}
"""
    )


def test_the_text_of_vectors() -> None:
    schedule = (
        Separate("k", "row", "x_"),
        Unroll("k"),
        ComputeAt("row", "c", 120),
        Vector("row"),
        Vector("y", beyond=True),
    )
    text = printed(row(80, 40, 2, 2, 0), schedule)
    assert text.startswith("""\
for (ptrdiff_t c = 0; c < 2; ++c) {
    mask odd = { 0 };
    float row[120] __attribute__((aligned(64)));
    for (ptrdiff_t x__at = 0; x__at < 80; x__at += LANES) {
        const ptrdiff_t x_ = (x__at < (-LANES + 80) ? x__at : (-LANES + 80));
        const vec v1 = *(const vec *)(x + (c * 80 + x_));
        odd |= (mask)(v1 != v1);
        *(vec *)(row + x_) = v1;
    }
    for (ptrdiff_t q = 0; q < 40; q += LANES) {
        const vec v2 = ODDS(*(const vec *)(row + (q * 2)), *(const vec *)(row + (q * 2) + LANES));
        const vec v3 = EVENS(*(const vec *)(row + (q * 2)), *(const vec *)(row + (q * 2) + LANES));
        const vec v4 = LARGER(v2, v3);
        if (-c * 40 - q + 80 >= LANES)
            *(vec *)(y + (c * 40 + q)) = v4;
""")


def test_passes_of_ever_wider_windows() -> None:
    """A window of 9 takes two passes of three reads, of which the first overwrites the row."""
    schedule = (Separate("k", "row", "x_"), Doubling("k", "row"), ComputeAt("row", "c", 120))
    text = printed(row(48, 40, 9, 1, 0), (*schedule, Vector("row"), Vector("y", beyond=True)))
    assert text.count("LARGER(") == 4
    assert "for (ptrdiff_t i = 0; i < 48; i += LANES)" in text


def test_blocks_of_a_run_time_size_have_a_name() -> None:
    wide = Size.named("n", 1, 99)
    schedule = (
        Separate("k", "row", "x_"),
        Split("q", 16),
        ComputeAt("row", "q", 18),
        Outermost("row"),
    )
    text = printed(row(wide, wide, 3, 1, 1), schedule)
    assert "const ptrdiff_t q_end = ((q0 + 16) < n ? (q0 + 16) : n);" in text
    assert "float row[18];" in text


def test_sums_start_from_zero() -> None:
    algorithm = row(9, 8, 3, 1, 0)
    (stage,) = algorithm.stages
    assert isinstance(stage.value, Reduce)
    value = Reduce(SUM, stage.value.axes, stage.value.body)
    text = printed(Algorithm((Stage(stage.to, stage.axes, value),)))
    assert "float a0 = 0.0e+00f;" in text
    assert "a0 = v1 + a0;" in text


def test_c_computes_what_the_interpreter_does(tmp_path: Path) -> None:
    """Poolings of random windows as one library, for the vectors of this CPU."""
    functions, support, cases = list[str](), dict[str, str](), []
    for seed in range(12):
        rng = np.random.default_rng(400 + seed)
        op, rank = tuple(KERNELS)[seed % 3], 1 + seed // 3 % 3
        sides = [int(each) + 11 for each in rng.integers(0, 20 // rank, rank)]
        dtype = DTYPES[seed % 4] if op == "MaxPool" else ir.DataType.FLOAT
        cx = context(op, (1, 2, *sides), random_window(rng, rank), dtype)
        KERNELS[op](cx)
        support |= cx.support
        signature = ", ".join(cx.parameters[name] for name in ("x0", "y0"))
        functions.append(f"void f{seed}({signature})\n{{\n{cx.body.text()}}}\n")
        cases.append((seed, op, cx, image(rng, 2 * math.prod(sides), numpy_type(cx.type(0)))))
    headers = "".join(f"#include <{each}.h>\n" for each in ("math", "stddef", "stdint", "string"))
    source = "".join((headers, *support.values(), *functions))
    flags = ("-std=c99", "-Og", "-march=native", "-ffp-contract=off")
    library = ctypes.CDLL(str(build({"pools.c": source.encode()}, tmp_path, flags)))
    for seed, op, cx, x in cases:
        count = math.prod(cx.output_shape())
        y, expected = np.zeros(count, x.dtype), np.zeros(count, x.dtype)
        getattr(library, f"f{seed}")(*(ctypes.c_void_p(each.ctypes.data) for each in (x, y)))
        run(lower(variants(cx)[-1][0]), {"x0": x, "y0": expected, **tables(cx)})
        tolerance = 0 if op == "MaxPool" else 3e-5
        np.testing.assert_allclose(y, expected, tolerance, tolerance, err_msg=str(seed))
