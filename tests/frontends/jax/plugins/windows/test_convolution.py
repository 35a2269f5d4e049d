"""Convolutions and pooling, in every layout."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax
from sampling import sampled

LAYOUTS = [
    ("NHWC", "HWIO", "NHWC"),
    ("NCHW", "OIHW", "NCHW"),
    ("NHWC", "OIHW", "NCHW"),
    ("HWNC", "IOHW", "HNWC"),
]
SHAPES = {"N": 2, "C": 3, "H": 7, "W": 8, "O": 4, "I": 3}


def conv(layout, **options):
    def fn(x, w):
        options.setdefault("window_strides", (1, 1))
        options.setdefault("padding", "SAME")
        return lax.conv_general_dilated(x, w, dimension_numbers=layout, **options)

    return fn


def specs(layout, kernel=(3, 2), groups=1):
    left = ",".join(str(SHAPES[c]) for c in layout[0])
    sizes = {
        **SHAPES,
        "H": kernel[0],
        "W": kernel[1],
        "I": 3 // groups,
        "O": 6 if groups > 1 else 4,
    }
    right = ",".join(str(sizes[c]) for c in layout[1])
    return f"f32[{left}]", f"f32[{right}]"


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_layouts(check, layout):
    check(conv(layout), *specs(layout), rtol=1e-4, atol=1e-5)


OPTIONS = {
    "strides": {"window_strides": (2, 3)},
    "valid": {"padding": "VALID"},
    "uneven padding": {"padding": ((0, 2), (3, 1))},
    "negative padding": {"padding": ((-1, 2), (0, -2))},
    "kernel dilation": {"rhs_dilation": (2, 3)},
    "input dilation": {"lhs_dilation": (2, 1), "padding": ((1, 1), (1, 1))},
    "input dilation both": {"lhs_dilation": (2, 3), "padding": ((1, 2), (0, 1))},
    "transposed": {"lhs_dilation": (2, 2), "padding": ((2, 2), (1, 1))},
    "input dilation, strides": {
        "lhs_dilation": (2, 2),
        "window_strides": (3, 3),
        "padding": ((1, 1), (0, 1)),
    },
    "input and kernel dilation": {
        "lhs_dilation": (2, 2),
        "rhs_dilation": (2, 1),
        "padding": ((0, 0), (0, 0)),
    },
    "input dilation, wide padding": {"lhs_dilation": (2, 2), "padding": ((5, 4), (3, 3))},
    "input dilation, negative": {"lhs_dilation": (2, 2), "padding": ((-1, 1), (0, -3))},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_windows(check, options):
    check(conv(LAYOUTS[0], **dict(options)), *specs(LAYOUTS[0]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dilation", [(1, 1), (2, 2)])
def test_groups(check, dilation):
    fn = conv(LAYOUTS[0], feature_group_count=3, lhs_dilation=dilation, padding=((1, 1), (1, 0)))
    check(fn, *specs(LAYOUTS[0], groups=3), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("dtype", sampled(["i32", "i8", "f64"], 2))
def test_types_that_conv_lacks(check, options, dtype):
    x, w = (text.replace("f32", dtype) for text in specs(LAYOUTS[3]))
    check(conv(LAYOUTS[3], **dict(options)), x, w, x64=dtype == "f64", rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["i32", "u8", "f64"])
def test_groups_of_types_that_conv_lacks(check, dtype):
    x, w = (text.replace("f32", dtype) for text in specs(LAYOUTS[0], groups=3))
    fn = conv(LAYOUTS[0], feature_group_count=3, padding="SAME")
    check(fn, x, w, x64=dtype == "f64", rtol=1e-12, atol=1e-12)


def test_integers_wrap(check):
    x = np.full((1, 2, 2, 1), 2**30, np.int32)
    w = np.full((2, 2, 1, 1), 3, np.int32)
    check(conv(LAYOUTS[0], padding="VALID"), "i32[1,2,2,1]", "i32[2,2,1,1]", inputs=[[x, w]])
    fn = conv(LAYOUTS[0], preferred_element_type=jnp.int32)
    check(
        fn,
        "i8[1,5,4,2]",
        "i8[2,2,2,3]",
        inputs=[[np.full((1, 5, 4, 2), -128), np.full((2, 2, 2, 3), 127)]],
    )


def test_no_dims_nothing_and_one_element(check):
    for dtype in ("f32", "i32"):
        check(
            lambda x, w: lax.conv_general_dilated(
                x, w, (), (), dimension_numbers=("NC", "OI", "NC")
            ),
            f"{dtype}[B,3]",
            f"{dtype}[4,3]",
            rtol=1e-5,
            atol=1e-5,
        )
        check(conv(LAYOUTS[1], padding="VALID"), f"{dtype}[2,3,2,2]", f"{dtype}[4,3,3,3]")
        check(conv(LAYOUTS[1]), f"{dtype}[2,0,2,2]", f"{dtype}[4,0,3,3]")
        check(conv(LAYOUTS[1]), f"{dtype}[1,1,1,1]", f"{dtype}[1,1,1,1]")


GRADIENTS = {
    "strides": {"window_strides": (2, 3), "padding": "VALID"},
    "wide padding": {"padding": ((4, 3), (5, 2))},
    "kernel dilation": {"rhs_dilation": (2, 3), "padding": ((1, 1), (4, 0))},
    "input dilation": {"lhs_dilation": (2, 3), "padding": ((1, 0), (2, 1))},
    "everything": {
        "window_strides": (3, 2),
        "lhs_dilation": (2, 1),
        "rhs_dilation": (1, 3),
        "padding": ((-1, 2), (3, -1)),
    },
}


@pytest.mark.parametrize("layout", sampled(LAYOUTS, 2), ids=str)
@pytest.mark.parametrize("options", GRADIENTS.values(), ids=GRADIENTS.keys())
def test_gradients_by_input_and_kernel(check, layout, options):
    energy = lambda x, w: (conv(layout, **dict(options))(x, w) ** 2).sum()  # noqa: E731
    check(jax.grad(energy, (0, 1)), *specs(layout), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("groups", [{"feature_group_count": 3}, {"batch_group_count": 2}], ids=str)
def test_gradients_of_groups(check, groups):
    fn = conv(LAYOUTS[0], padding="SAME", window_strides=(2, 1), **groups)
    count = groups.get("feature_group_count", 1)
    gradient = jax.grad(lambda x, w: (fn(x, w) ** 2).sum(), (0, 1))
    check(gradient, *specs(LAYOUTS[0], groups=count), rtol=1e-3, atol=1e-3)


def test_gradient_over_a_symbolic_batch(check):
    fn = jax.grad(lambda x, w: (conv(LAYOUTS[0])(x, w) ** 2).sum(), (0, 1))
    check(fn, "f32[B,6,5,3]", "f32[3,3,3,4]", rtol=1e-3, atol=1e-3)


def test_patches_and_local_kernels(check):
    check(
        lambda x: lax.conv_general_dilated_patches(x, (3, 2), (2, 1), "SAME", rhs_dilation=(1, 2)),
        "f32[B,3,7,8]",
    )
    check(
        lambda x, w: lax.conv_general_dilated_local(x, w, (1, 2), "VALID", (2, 3)),
        "f32[2,3,5,7]",
        "f32[4,18,4,3]",
        rtol=1e-4,
        atol=1e-4,
    )


def test_vmapped_kernels(check):
    fn = jax.vmap(conv(LAYOUTS[0]), in_axes=(None, 0))
    check(fn, "f32[2,6,5,3]", "f32[3,2,2,3,4]", rtol=1e-4, atol=1e-4)
    check(jax.vmap(conv(LAYOUTS[0])), "f32[3,2,6,5,3]", "f32[3,2,2,3,4]", rtol=1e-4, atol=1e-4)


def test_one_and_three_dims(check):
    check(
        lambda x, w: lax.conv_general_dilated(
            x, w, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
        ),
        "f32[B,9,3]",
        "f32[3,3,4]",
        rtol=1e-4,
        atol=1e-5,
    )
    check(
        lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1, 2), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")
        ),
        "f32[B,4,5,6,2]",
        "f32[2,3,3,2,3]",
        rtol=1e-4,
        atol=1e-5,
    )


def test_conv_transpose_as_jax_spells_it(check):
    for padding in ("SAME", "VALID"):
        check(
            lambda x, w, p=padding: lax.conv_transpose(x, w, (2, 2), p),
            "f32[B,5,4,3]",
            "f32[3,3,3,4]",
            rtol=1e-4,
            atol=1e-5,
        )


def test_gradients_of_convolutions_are_convolutions(check):
    fn = jax.grad(lambda x, w: (conv(LAYOUTS[0], window_strides=(2, 2))(x, w) ** 2).sum())
    check(fn, *specs(LAYOUTS[0]), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("dilation", [(1, 1), (2, 1)])
def test_batch_groups(check, layout, dilation):
    sizes = {**SHAPES, "N": 6, "O": 9}
    shapes = [",".join(str(sizes[c]) for c in names) for names in layout[:2]]
    fn = conv(layout, batch_group_count=3, lhs_dilation=dilation, padding=((1, 2), (0, 1)))
    check(fn, *(f"f32[{shape}]" for shape in shapes), rtol=1e-4, atol=1e-4)
    check(fn, *(f"i32[{shape}]" for shape in shapes))


def test_symbolic_spatial_sizes(check):
    sizes = ({"H": 6, "W": 9}, {"H": 11, "W": 7})
    fn = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=LAYOUTS[0])  # noqa: E731
    check(fn, "f32[2,H,W,3]", "f32[3,3,3,4]", sizes=sizes, rtol=1e-4, atol=1e-5)


POOLS = {
    "max": lambda x: nnx.max_pool(x, (2, 2), (2, 2)),
    "max same": lambda x: nnx.max_pool(x, (3, 3), (2, 2), padding="SAME"),
    "min": lambda x: nnx.min_pool(x, (3, 2), (1, 2), padding="SAME"),
    "mean": lambda x: nnx.avg_pool(x, (2, 2), (2, 2)),
    "mean same": lambda x: nnx.avg_pool(x, (3, 3), (1, 1), padding="SAME"),
    "mean without padding": lambda x: nnx.avg_pool(
        x, (3, 3), (1, 1), padding="SAME", count_include_pad=False
    ),
    "channels": lambda x: lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 1, 1, 2), (1, 1, 1, 1), "VALID"
    ),
    "three dims": lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 2), (1, 1, 2, 1), "SAME"),
    "wide padding": lambda x: lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 1, 1, 1), ((0, 0), (3, 2), (0, 4), (0, 0))
    ),
    "dilated window": lambda x: lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "VALID", window_dilation=(1, 2, 2, 1)
    ),
    "dilated sum": lambda x: lax.reduce_window(
        x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID", window_dilation=(1, 2, 2, 1)
    ),
    "dilated base": lambda x: lax.reduce_window(
        x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME", base_dilation=(1, 2, 3, 1)
    ),
}


@pytest.mark.parametrize("fn", POOLS.values(), ids=POOLS.keys())
def test_pools(check, fn):
    check(fn, "f32[4,6,7,3]", rtol=1e-5, atol=1e-5)


def test_pools_in_a_symbolic_batch_without_shapes(check):
    model = check(POOLS["max same"], "f32[B,6,7,3]")
    assert [node.op_type for node in model.graph] == ["Transpose", "MaxPool", "Transpose"]


def test_max_pool_of_integers(check):
    big = np.array([[2**30, 5, -7], [3, -(2**30), 9]], np.int32)
    low = np.int32(-(2**31))
    check(
        lambda x: lax.reduce_window(x, low, lax.max, (2, 2), (1, 1), "SAME"),
        "i32[2,3]",
        inputs=[[big]],
    )


def test_max_pool_of_infinities(check):
    x = np.full((1, 4, 4, 1), -np.inf, np.float32)
    check(POOLS["max"], "f32[1,4,4,1]", inputs=[[x], [-x]])
