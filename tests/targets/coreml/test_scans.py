"""Scan over rows whose number is open or large: while_loop with a tensor for each result."""

from __future__ import annotations

import numpy as np
import pytest
from targets.coreml.packages import computed, types, written
from targets.coreml.test_target import errors

from smelt.ir import text
from smelt.runtime.runner import run

SCAN = """g (float[B,3] s, float[T,B,3] x) => (last, rows) {{ last, rows = Scan<num_scan_inputs=1,
scan_input_directions=[{i}], scan_output_directions=[{o}], scan_output_axes=[{axis}],
body=b (float[B,3] c, float[B,3] r) => (float[B,3] n, float[B,3] y) {{ n = Add(c, r) y = Mul(n, r) }}>
(s, x) }}"""
OPEN = {"T": (1, 9), "B": (1, 4)}


def checked(model: str, dims: dict, sizes: tuple[int, int]) -> list[str]:
    """Return the operators of the package, which computes what ``model`` does at ``sizes``."""
    rng, (length, batch) = np.random.default_rng(0), sizes
    feeds = [rng.random(each, np.float32) for each in ((batch, 3), (length, batch, 3))]
    artifact = written(model, dims=dims)
    for found, wanted in zip(
        computed(artifact, *feeds), run(text.parse(model), feeds), strict=True
    ):
        np.testing.assert_allclose(found, wanted, 1e-6)
    return types(artifact)


@pytest.mark.parametrize("sizes", [(1, 1), (5, 2)])
@pytest.mark.parametrize(("i", "o", "axis"), [(0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, -1)])
def test_an_open_number_of_rows(i: int, o: int, axis: int, sizes: tuple[int, int]) -> None:
    assert "while_loop" in checked(SCAN.format(i=i, o=o, axis=axis), OPEN, sizes)


@pytest.mark.parametrize(("length", "loops"), [(128, False), (129, True)])
def test_a_large_number_of_rows(length: int, loops: bool) -> None:
    model = SCAN.format(i=0, o=0, axis=0).replace("[T,B", f"[{length},B").replace("B,", "2,")
    assert ("while_loop" in checked(model, {}, (length, 2))) == loops


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("y = Mul(n, r)", "z = Mul(n, r) y = Greater(z, r)", "is bool"),
        ("y = Mul(n, r)", "z = NonZero(r) y = Cast<to=1>(z)", "a size that no input has"),
    ],
)
def test_results_of_rounds_that_core_ml_cannot_collect(
    before: str, after: str, reason: str
) -> None:
    model = SCAN.format(i=0, o=0, axis=0).replace(before, after).replace("float[B,3] y)", "y)")
    assert any(reason in (error.why or "") for error in errors(model, dims=OPEN))
