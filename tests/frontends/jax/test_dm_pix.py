"""Image functions of dm_pix convert."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import dm_pix as pix
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sampling import sampled

BATCHES = "f32[B,8,8,3]"
IMAGE = "f32[8,8,3]"
SMALLER = jnp.eye(3) * 0.9
PLACES = jnp.array([[1.5, 2.5], [0.2, 3.3]])

CASES: dict[str, tuple[Callable[..., Any], str]] = {
    "rgb_to_grayscale": (pix.rgb_to_grayscale, BATCHES),
    "rgb_to_hsv": (pix.rgb_to_hsv, BATCHES),
    "rgb_to_hsl": (pix.rgb_to_hsl, BATCHES),
    "hsv_to_rgb": (lambda x: pix.hsv_to_rgb(pix.rgb_to_hsv(x)), BATCHES),
    "adjust_brightness": (partial(pix.adjust_brightness, delta=0.1), BATCHES),
    "adjust_contrast": (partial(pix.adjust_contrast, factor=1.5), BATCHES),
    "adjust_gamma": (partial(pix.adjust_gamma, gamma=1.2), BATCHES),
    "adjust_hue": (partial(pix.adjust_hue, delta=0.1), BATCHES),
    "adjust_saturation": (partial(pix.adjust_saturation, factor=0.5), BATCHES),
    "flip_left_right": (pix.flip_left_right, BATCHES),
    "flip_up_down": (pix.flip_up_down, BATCHES),
    "rot90": (partial(pix.rot90, k=1), BATCHES),
    "solarize": (partial(pix.solarize, threshold=0.5), BATCHES),
    "gaussian_blur": (partial(pix.gaussian_blur, sigma=1.0, kernel_size=3), BATCHES),
    "space_to_depth": (partial(pix.space_to_depth, block_size=2), BATCHES),
    "depth_to_space": (lambda x: pix.depth_to_space(x[..., :1].repeat(4, -1), 2), BATCHES),
    "center_crop": (lambda x: pix.center_crop(x, 4, 4), BATCHES),
    "resize_with_crop_or_pad": (lambda x: pix.resize_with_crop_or_pad(x, 10, 6), BATCHES),
    "rotate": (lambda x: pix.rotate(x, 0.3), IMAGE),
    "affine_transform": (lambda x: pix.affine_transform(x, SMALLER), IMAGE),
    "elastic_deformation": (
        lambda x: pix.elastic_deformation(jax.random.key(0), x, 2.0, 1.0),
        IMAGE,
    ),
    "flat_nd_linear_interpolate": (
        lambda x: pix.flat_nd_linear_interpolate(x[..., 0], PLACES),
        IMAGE,
    ),
    "ssim": (lambda x: pix.ssim(x, x * 0.9, filter_size=5), BATCHES),
    "psnr": (lambda x: pix.psnr(x, x * 0.9), BATCHES),
}


@pytest.mark.parametrize("name", sampled(CASES, 2))
def test_same_images(check, name):
    fn, spec = CASES[name]
    rng = np.random.default_rng(0)
    shapes = [(8, 8, 3)] if spec == IMAGE else [(1, 8, 8, 3), (3, 8, 8, 3)]
    images = [[rng.uniform(0, 1, shape).astype(np.float32)] for shape in shapes]
    check(fn, spec, inputs=images, rtol=1e-4, atol=1e-5, compiled=True)
