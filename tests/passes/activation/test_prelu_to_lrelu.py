"""A PRelu with equal slopes becomes a LeakyRelu."""

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.activation.prelu_to_lrelu import prelu_to_lrelu

G = "g (float[N,3,2] x) => (float[N,3,2] y)"


@pytest.mark.parametrize(
    "slope", ["float s = {0.5}", "float[1] s = {0.5}", "float[3,1] s = {0.5,0.5,0.5}"]
)
def test_equal_slopes(slope: str) -> None:
    after = f"{G} {{ y = LeakyRelu<alpha=0.5>(x) }}"
    check_rewrite(prelu_to_lrelu, f"{G} <{slope}> {{ y = PRelu(x, s) }}", after)


KEPT = {
    "two slopes": f"{G} <float[2] s = {{0.5,0.25}}> {{ y = PRelu(x, s) }}",
    "nearly equal": f"{G} <float[2] s = {{0.5,0.50001}}> {{ y = PRelu(x, s) }}",
    "not a number": f"{G} <float[2] s = {{nan,nan}}> {{ y = PRelu(x, s) }}",
    "a slope of a higher rank": "g (float[2] x) => (float[1,2] y) <float[1,1] s = {0.5}> { y = PRelu(x, s) }",
    "an input": "g (float[3,2] x, float[2] s) => (float[3,2] y) { y = PRelu(x, s) }",
    "an input with a default": "g (float[3,2] x, float[1] s = {0.5}) => (float[3,2] y) "
    "{ y = PRelu(x, s) }",
    "integers": "g (int32[2] x) => (int32[2] y) <int32 s = {2}> { y = PRelu(x, s) }",
    "float64": "g (double[2] x) => (double[2] y) <double s = {2}> { y = PRelu(x, s) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(prelu_to_lrelu, graph)
