"""Input specs as text."""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np
import pytest
from jax import export

from smelt.errors import UsageError
from smelt.frontends.jax import trace
from smelt.frontends.jax.call import specs
from smelt.frontends.jax.call.specs import parse

READ = {
    "f32[]": ((), np.float32),
    "f32[3]": (("3",), np.float32),
    "bf16[B, 8]": (("B", "8"), ml_dtypes.bfloat16),
    "i8[2*B,]": (("2*B",), np.int8),
    "bool[B,S//2,S%3]": (("B", "floordiv(S, 2)", "mod(S, 3)"), np.bool_),
    "u16[max(B, 4),B**2]": (("max(B, 4)", "B^2"), np.uint16),
    "float32[S-1,-S+4]": (("S - 1", "- S + 4"), np.float32),
    " int64 [ 2 ] ": (("2",), np.int64),
}


@pytest.mark.parametrize("text", READ)
def test_reads(text):
    dims, dtype = READ[text]
    struct = parse(text)
    assert tuple(str(dim) for dim in struct.shape) == dims
    assert struct.dtype == dtype


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f32",
        "f32[",
        "f33[2]",
        "f32[a b]",
        "f32[-1]",
        "f32[B.x]",
        "f32[1.5]",
        "f32[B@2]",
        "f32[(B+1)*2]",
    ],
)
def test_refuses_with_a_coded_error(text):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.code == "E104"


@pytest.mark.parametrize("constraint", ["B", "B > 1", "B >= ", "1 >= 2", "B ! 2"])
def test_refuses_constraints_that_are_none(constraint):
    with pytest.raises(UsageError) as caught:
        trace(lambda x: x, "f32[B]", constraints=(constraint,))
    assert caught.value.code == "E104"


def test_dims_of_the_callers_own_scope():
    (b,) = export.symbolic_shape("B", constraints=("B >= 2",))
    model = trace(lambda x, y: x[:2] + y.sum(), jax.ShapeDtypeStruct((b,), "f4"), "f32[B]")
    assert str(model.graph.inputs[1].shape[0]) == "B"
    other = jax.ShapeDtypeStruct(export.symbolic_shape("C"), "f4")
    with pytest.raises(UsageError, match="several scopes"):
        trace(lambda x, y: x, jax.ShapeDtypeStruct((b,), "f4"), other)


def test_an_object_that_is_no_spec_is_refused():
    with pytest.raises(UsageError) as caught:
        trace(lambda x: x, object())
    assert caught.value.code == "E104"


def test_equal_constraints_are_one_scope():
    """JAX's caches of inner functions then serve a second trace."""
    (first,), _ = specs.resolve(["f32[B,4]"], ["B >= 2"], x64=False)
    (second,), _ = specs.resolve(["f32[B,4]"], ["B >= 2"], x64=False)
    (other,), _ = specs.resolve(["f32[B,4]"], [], x64=False)
    assert first.shape == second.shape
    assert first.shape != other.shape
