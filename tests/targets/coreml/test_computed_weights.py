"""Convolutions whose weights are computed: no dilation, and no transposed convolution in Core ML."""

from __future__ import annotations

import numpy as np
import pytest
from targets.coreml.packages import computed, types, written
from targets.coreml.test_target import errors

from smelt.ir import text
from smelt.runtime.runner import run


def convolution(op: str, x: str, w: str, attributes: str, b: int) -> str:
    """Return text of a convolution whose operands are all inputs."""
    more = f"<{attributes}>" if attributes else ""
    return (
        f"g (float[{x}] x, float[{w}] w, float[{b}] b) => (y) "
        f"{{ v = Neg(w) y = {op}{more}(x, v, b) }}"
    )


ROWS = {
    "transposed": ("ConvTranspose", "2,3,6", "3,4,3", "", 4),
    "transposed, steps and pads": ("ConvTranspose", "2,3,6", "3,4,3", "strides=[2], pads=[1,1]", 4),
    "transposed, uneven": (
        *("ConvTranspose", "1,3,4,5", "3,2,3,2"),
        *("strides=[2,3], pads=[1,0,0,1], output_padding=[1,0]", 2),
    ),
    "transposed, added rows": (
        *("ConvTranspose", "1,2,3,3", "2,2,2,2", "strides=[2,2], output_padding=[1,1]", 2),
    ),
    "dilated": ("Conv", "1,4,9,9", "4,2,2,3", "dilations=[2,3], group=2", 4),
    "plain": ("Conv", "1,2,9", "4,2,3", "pads=[1,1], strides=[2]", 4),
}


@pytest.mark.parametrize("row", ROWS)
def test_rows(row: str) -> None:
    model, rng = convolution(*ROWS[row]), np.random.default_rng(0)
    feeds = [
        rng.normal(size=list(map(int, each.split(",")))).astype(np.float32)
        for each in (*ROWS[row][1:3], str(ROWS[row][4]))
    ]
    artifact = written(model)
    assert "conv" in types(artifact)
    (found,), (wanted,) = computed(artifact, *feeds), run(text.parse(model), feeds)
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


OPEN = {
    "dilated": ("Conv", "2,N,9", "4,N,3", "dilations=[2]", 4),
    "dilated, two open sizes": ("Conv", "2,N,9,9", "M,N,3,2", "dilations=[2,3]", "M"),
    "transposed": ("ConvTranspose", "2,N,6", "N,4,3", "strides=[2]", 4),
    "transposed, open lengths": ("ConvTranspose", "M,N,S", "N,4,3", "strides=[3]", 4),
}


@pytest.mark.parametrize("row", OPEN)
def test_open_channels(row: str) -> None:
    """The gradient of a convolution has the open batch as its channels."""
    model, rng = convolution(*OPEN[row]), np.random.default_rng(0)
    artifact = written(model, dims={name: (1, 5) for name in "MNS" if name in model})
    for sizes in ({"N": 1, "M": 3, "S": 2}, {"N": 5, "M": 1, "S": 4}):
        feeds = [
            rng.normal(size=[sizes.get(size) or int(size) for size in each.split(",")])
            for each in (*OPEN[row][1:3], str(OPEN[row][4]))
        ]
        given = [each.astype(np.float32) for each in feeds]
        (found,), (wanted,) = computed(artifact, *given), run(text.parse(model), given)
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


@pytest.mark.parametrize("attributes", ["group=3", "dilations=[2]", "pads=[3,0]"])
def test_what_is_refused(attributes: str) -> None:
    channels = 3 if "group" in attributes else 4
    weight = "3,1,3" if "group" in attributes else "3,4,3"
    model = convolution("ConvTranspose", "2,3,6", weight, attributes, channels)
    (error,) = errors(model)
    assert error.code == "E201"
    assert "computed" in error.why
