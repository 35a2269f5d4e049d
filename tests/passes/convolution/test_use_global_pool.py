"""An AveragePool of one window that covers the image is a GlobalAveragePool."""

import pytest
from rewrites import check_refused, check_rewrite, check_unchanged

from smelt.passes.convolution.use_global_pool import use_global_pool

HUGE = "kernel_shape=[9, 7], strides=[9, 7], ceil_mode=1"


def pooled(attributes: str, image: str = "3,2", result: str = "1,1", dtype: str = "float") -> str:
    """Return a graph with an AveragePool of two channels."""
    return (
        f"g ({dtype}[N,2,{image}] x) => ({dtype}[N,2,{result}] y) "
        f"{{ y = AveragePool<{attributes}>(x) }}"
    )


def whole(image: str = "3,2", result: str = "1,1", dtype: str = "float") -> str:
    return f"g ({dtype}[N,2,{image}] x) => ({dtype}[N,2,{result}] y) {{ y = GlobalAveragePool(x) }}"


@pytest.mark.parametrize(
    ("attributes", "image", "result"),
    [
        ("kernel_shape=[3, 2]", "3,2", "1,1"),
        ("kernel_shape=[3, 2], strides=[1, 5], count_include_pad=1", "3,2", "1,1"),
        (f"{HUGE}", "3,2", "1,1"),
        (f"{HUGE}, count_include_pad=1", "3,2", "1,1"),
        ('kernel_shape=[3, 2], auto_pad="VALID"', "3,2", "1,1"),
        ("kernel_shape=[4]", "4", "1"),
        ("kernel_shape=[2, 3, 1]", "2,3,1", "1,1,1"),
        ("kernel_shape=[1, 1]", "1,1", "1,1"),
    ],
)
def test_pools_of_the_whole_image(attributes: str, image: str, result: str) -> None:
    check_rewrite(use_global_pool, pooled(attributes, image, result), whole(image, result))


def test_halves() -> None:
    half = {"image": "3,2", "dtype": "float16"}
    check_rewrite(use_global_pool, pooled("kernel_shape=[3, 2]", **half), whole(**half))


@pytest.mark.parametrize(
    ("attributes", "image", "result"),
    [
        ("kernel_shape=[2, 2], strides=[2, 2]", "3,3", "1,1"),  # one window, not all pixels
        ("kernel_shape=[3, 2]", "5,2", "3,1"),
        ("kernel_shape=[3, 2], pads=[0, 1, 0, 1]", "3,2", "1,3"),  # three windows
        ("kernel_shape=[3, 2]", "H,2", "?,1"),
    ],
)
def test_smaller_kernels_stay(attributes: str, image: str, result: str) -> None:
    check_unchanged(use_global_pool, pooled(attributes, image, result))


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ("kernel_shape=[3, 2], pads=[0, 1, 0, 0], strides=[1, 9]", "the AveragePool has pads"),
        (
            'kernel_shape=[3, 2], strides=[3, 2], auto_pad="SAME_UPPER"',
            "auto_pad of the AveragePool is neither NOTSET nor VALID",
        ),
        (
            "kernel_shape=[3, 2], strides=[9, 9], ceil_mode=1, dilations=[2, 2]",
            "the kernel of the AveragePool is dilated",
        ),
    ],
)
def test_others_are_refused(attributes: str, why: str) -> None:
    check_refused(use_global_pool, pooled(attributes), why)


def test_a_pool_read_twice_is_one_pool() -> None:
    check_rewrite(
        use_global_pool,
        "g (float[1,2,3,2] x) => (float[1,2,1,1] y, float[1,2,1,1] z) "
        "{ y = AveragePool<kernel_shape=[3, 2]>(x) z = Neg(y) }",
        "g (float[1,2,3,2] x) => (float[1,2,1,1] y, float[1,2,1,1] z) "
        "{ y = GlobalAveragePool(x) z = Neg(y) }",
    )
