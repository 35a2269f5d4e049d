"""Weights that do not stay near the processor are fetched ahead: what is computed is the same."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import STRICT, Library, joined, random_inputs, with_values

import smelt
from smelt.native.kernels import conv_panels, dot
from smelt.runtime.runner import run

FLAGS = {
    "no vectors": ("-DSMELT_NO_DISPATCH", "-DLANES=1"),
    "any CPU": ("-DSMELT_NO_DISPATCH",),
    "this CPU": (),
}
ROWS, COLUMNS = (1, 2, 4, 9, 37), (5, 32, 75)
GRAPHS = {
    f"{m} rows, {n} columns{', finished' if finished else ''}": (
        f"g (float[{m},19] x, float[19,{n}] w, float[{n}] b) => (float[{m},{n}] y)"
        f" {{ c = MatMul(x, w) {'s = Add(c, b) y = Relu(s)' if finished else 'y = Add(c, b)'} }}"
    )
    for m in ROWS
    for n in COLUMNS
    for finished in (False, True)
}


@pytest.fixture(scope="module", params=FLAGS.values(), ids=FLAGS)
def library(request: pytest.FixtureRequest) -> Library:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dot, "FAR", 0)
        patch.setattr(dot, "FAR_OF_FEW", 0)
        return Library(GRAPHS, flags=(*STRICT, *request.param), constant="w b")


@pytest.mark.parametrize("name", GRAPHS)
def test_products_with_far_weights(library: Library, name: str) -> None:
    library.check(name, random_inputs(library.models[name].source), rtol=1e-4, atol=2e-5)


def _is_fetched(rows: int, constant: str) -> bool:
    source = GRAPHS["9 rows, 75 columns"].replace("19", "1000").replace("[9,", f"[{rows},")
    built = Library({"g": source}, constant=constant).models["g"]
    return b"FETCH(ahead" in b"".join(joined(built.artifact.files).values())


def test_only_what_many_rows_are_multiplied_with_is_fetched() -> None:
    """A few rows wait for weights anyhow, and nobody knows where computed ones lie."""
    assert _is_fetched(37, "w b")
    assert not _is_fetched(2, "w b")
    assert not _is_fetched(7, "w b")
    assert _is_fetched(8, "w b")
    assert not _is_fetched(37, "b")


@pytest.mark.parametrize("filters", [12, 24, 70])
def test_convolutions_by_panels_with_far_weights(
    monkeypatch: pytest.MonkeyPatch, filters: int
) -> None:
    """Blocks of one length and of two, the last of which has nothing behind it."""
    monkeypatch.setattr(conv_panels, "FAR", 0)
    weights = np.random.default_rng(0).standard_normal((filters, 130, 1, 1), np.float32)
    source = (
        f"g (float[2,130,15,15] x, float[{filters},130,1,1] w) => (float[2,{filters},15,15] y)"
        " { c = Conv(x, w) y = Relu(c) }"
    )
    model = with_values(source, 23, {"w": weights})
    given = np.random.default_rng(1).standard_normal((2, 130, 15, 15), np.float32)
    (wanted,) = run(model, [given])
    for threads in (1, 2):
        (got,) = smelt.compile(model, target="host", engine="native", threads=threads)(given)
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)
