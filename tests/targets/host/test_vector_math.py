"""Functions such as exp are accurate to 4 ulp, whether a vector or a scalar form computes them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from smelt.targets.base import Artifact

ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, 1e30, -1e30, 2.5, -1.0, 1.0]

FUNCTIONS = {
    "Exp": (np.exp, (-745, 709)),
    "Log": (np.log, (0, 1e6)),
    "Tanh": (np.tanh, (-20, 20)),
    "Erf": (special.erf, (-7, 7)),
    "Sin": (np.sin, (-1e5, 1e5)),
    "Cos": (np.cos, (-1e5, 1e5)),
    "Sinh": (np.sinh, (-700, 700)),
    "Cosh": (np.cosh, (-700, 700)),
    "Atan": (np.arctan, (-50, 50)),
}


@pytest.fixture(params=["native"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def check(artifact: Artifact, name: str, x: np.ndarray) -> None:
    function = FUNCTIONS[name][0]
    (y,) = artifact(x)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64 if x.dtype == np.float32 else np.longdouble)
        expected = function(x if name == "Erf" else wide)
        near = expected.astype(x.dtype)
        exact = ~np.isfinite(near) | (near == 0)
        np.testing.assert_array_equal(y[exact], near[exact])
        assert (np.signbit(y) == np.signbit(near))[~np.isnan(near)].all()
        units = np.abs(y - expected)[~exact] / np.spacing(np.abs(near))[~exact]
    assert units.max() <= 4 + (name == "Erf")  # of which scipy may be one off


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "Exp" else pytest.mark.slow) for n in FUNCTIONS]
)
def test_doubles(compile_host, name: str) -> None:
    low, high = FUNCTIONS[name][1]
    x = np.random.default_rng(0).uniform(low, high, 5000)
    artifact = compile_host(f"g (double[5011] x) => (double[5011] y) {{ y = {name}(x) }}")
    check(artifact, name, np.concatenate([ODD, x]))


@pytest.mark.slow  # compiles C
@pytest.mark.parametrize("name", ["Log", "Sin", "Cos"])
def test_floats(compile_host, name: str) -> None:
    low, high = FUNCTIONS[name][1]
    x = np.random.default_rng(0).uniform(low / 100, high / 100, 5000)
    artifact = compile_host(f"g (float[5011] x) => (float[5011] y) {{ y = {name}(x) }}")
    with np.errstate(over="ignore"):
        check(artifact, name, np.concatenate([ODD, x]).astype(np.float32))
