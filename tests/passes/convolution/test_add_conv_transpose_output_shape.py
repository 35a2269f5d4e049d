"""``output_shape`` is added where ONNX computes the same pads from it."""

import pytest
from convolutions import tensor
from rewrites import check_operators, check_unchanged

from smelt.passes.convolution.add_conv_transpose_output_shape import add_conv_transpose_output_shape


def graph(
    attributes: str, x: str = "float[N,2,4,5]", weight: tuple[int, ...] = (2, 3, 3, 2)
) -> str:
    body = f"y = ConvTranspose{attributes}(x, w)"
    return f"g ({x} x) => (float[N,3,?,?] y) <{tensor('w', weight)}> {{ {body} }}"


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ("", (6, 6)),
        ("<strides=[2,1]>", (9, 6)),
        ("<pads=[1,0,1,0]>", (4, 6)),
        ("<strides=[2,2], output_padding=[1,0], pads=[1,1,1,1]>", (8, 8)),
        ("<dilations=[2,1]>", (8, 6)),
    ],
)
def test_notes_the_size(attributes: str, shape: tuple[int, int]) -> None:
    model = check_operators(
        add_conv_transpose_output_shape, graph(attributes), ["ConvTranspose"], modes=("normal",)
    )
    [node] = model.graph
    assert tuple(node.attributes["output_shape"].as_ints()) == shape


KEPT = {
    "uneven pads": graph("<pads=[1,0,0,0]>"),
    "automatic pads": graph('<auto_pad="SAME_UPPER">'),
    "noted already": graph("<output_shape=[6,6]>"),
    "symbolic size": graph("", x="float[N,2,H,5]"),
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_keeps(text: str) -> None:
    check_unchanged(add_conv_transpose_output_shape, text)
