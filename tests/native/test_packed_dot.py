"""Products with weights of 4 bits: near those of the floats that the weights stand for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from c_library import Library, ops, with_values
from native.test_quantized_conv import BUILDS, skip_what_lacks

import smelt
from smelt.operators.onnxruntime.microsoft.packed import product


@dataclass(frozen=True)
class Case:
    """One product: the left side, columns, and what else it has."""

    shape: tuple[int, ...]
    columns: int
    block: int
    zeros: bool = False
    bias: bool = False
    places: bool = False
    bits: int = 4

    @property
    def attributes(self) -> dict[str, int]:
        depth = self.shape[-1]
        return {"K": depth, "N": self.columns, "bits": self.bits, "block_size": self.block}

    @property
    def graph(self) -> str:
        x, n = ",".join(map(str, self.shape)), self.columns
        y = ",".join(map(str, (*self.shape[:-1], n)))
        blocks = -(-self.shape[-1] // self.block)
        row = -(-blocks * self.bits // 8)
        more = f", uint8[{n * row}] z" if self.zeros else ""
        more += f", int32[{self.shape[-1]}] p" if self.places else ""
        more += f", float[{n}] c" if self.bias else ""
        used = [("z", self.zeros), ("p", self.places), ("c", self.bias)]
        names = ["x", "b", "s", *(f"{name if there else ''}" for name, there in used)]
        while not names[-1]:
            names.pop()
        said = ", ".join(f"{name}={value}" for name, value in self.attributes.items())
        return (
            f"g (float[{x}] x, uint8[{n},{blocks},{self.block * self.bits // 8}] b, "
            f"float[{n * blocks}] s{more}) => (float[{y}] y) "
            f"{{ y = com.microsoft.MatMulNBits<{said}>({', '.join(names)}) }}"
        )

    @property
    def values(self) -> dict[str, np.ndarray]:
        rng, n, depth = np.random.default_rng(self.columns), self.columns, self.shape[-1]
        blocks = -(-depth // self.block)
        codes = (n, blocks, self.block * self.bits // 8)
        held = {"b": rng.integers(0, 256, codes).astype(np.uint8)}
        held["s"] = rng.uniform(0.01, 0.1, n * blocks).astype(np.float32)
        if self.zeros:
            size = n * -(-blocks * self.bits // 8)
            held["z"] = rng.integers(0, 256, size).astype(np.uint8)
        if self.places:
            held["p"] = rng.integers(0, blocks, depth).astype(np.int32)
        if self.bias:
            held["c"] = rng.normal(size=n).astype(np.float32)
        return held


CASES = {
    "a row": Case((1, 64), 40, 32),
    "a row with zero points": Case((1, 288), 33, 16, zeros=True),
    "half a block": Case((3, 100), 17, 64, zeros=True, bias=True),
    "rows": Case((2, 7, 128), 9, 128, bias=True),
    "long blocks": Case((5, 300), 24, 256),
    "one column": Case((1, 16), 1, 16, zeros=True),
}
SPELLED_OUT = {
    "places": Case((2, 64), 8, 32, places=True),
    "8 bits": Case((2, 64), 8, 32, bits=8, zeros=True),
}


@pytest.fixture(scope="module", params=BUILDS.values(), ids=BUILDS.keys())
def library(request: pytest.FixtureRequest) -> Library:
    skip_what_lacks(request.param)
    graphs = {name: case.graph for name, case in CASES.items()}
    return Library(graphs, flags=request.param, values={n: c.values for n, c in CASES.items()})


@pytest.mark.parametrize("name", CASES)
def test_results_are_near_those_of_the_floats(library: Library, name: str) -> None:
    x, want = given(CASES[name])
    (got,) = library.run(name, [x])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert ops(library.models[name].artifact) == ["MatMulNBits"]


@pytest.mark.parametrize("name", SPELLED_OUT)
def test_products_without_kernel_are_decomposed(name: str) -> None:
    case = SPELLED_OUT[name]
    x, want = given(case)
    artifact = smelt.compile(with_values(case.graph, 23, case.values), target="c")
    np.testing.assert_allclose(artifact(x)[0], want, rtol=1e-4, atol=1e-4)


def given(case: Case, x: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """A left side of a case, and its product."""
    held = case.values
    if x is None:
        x = np.random.default_rng(0).normal(size=case.shape).astype(np.float32)
    inputs = (x, held["b"], held["s"], *(held.get(key) for key in ("z", "p", "c")))
    return x, np.asarray(product(inputs, case.attributes)[0])


def test_the_weights_stay_4_bits(library: Library) -> None:
    codes = CASES["long blocks"].values["b"]
    assert library.models["long blocks"].artifact.plan.facts["weights_bytes"] < 1.5 * codes.size


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", ["a row", "half a block"])
def test_nan_and_inf_propagate_as_in_floats(library: Library, name: str, number: float) -> None:
    x, _ = given(CASES[name])
    x[0, 40] = number
    want = given(CASES[name], x)[1]
    (got,) = library.run(name, [x])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert not np.isfinite(want[0]).any()
