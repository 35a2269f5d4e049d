"""Graphs with a convolution `c` of an input `x`, in ONNX text, for the tests of its fusions."""

import numpy as np

SPATIAL = {1: "6", 2: "5,6", 3: "4,5,3"}
CASES = {
    "1-d": ("Conv(x, w)", (4, 2, 3), 4),
    "2-d": ("Conv<pads=[1,1,0,1], strides=[2,1]>(x, w)", (4, 2, 3, 2), 4),
    "3-d": ("Conv<dilations=[1,2,1]>(x, w)", (4, 2, 2, 2, 1), 4),
    "groups": ("Conv<group=2>(x, w)", (4, 3, 1, 2), 4),
    "depthwise": ("Conv<group=4>(x, w)", (4, 1, 3), 4),
    "transposed 1-d": ("ConvTranspose(x, w)", (2, 4, 3), 4),
    "transposed 2-d": ("ConvTranspose<strides=[2,2], output_padding=[1,0]>(x, w)", (3, 4, 2, 2), 4),
    "transposed 3-d": ("ConvTranspose(x, w)", (2, 4, 2, 1, 2), 4),
    "transposed groups": ("ConvTranspose<group=2>(x, w)", (4, 3, 2, 2), 6),
    "one channel": ("Conv(x, w)", (1, 2, 3), 1),
}
"""The convolution, the shape of its weight, and the number of output channels."""


def tensor(name: str, shape: tuple[int, ...], positive: bool = False, dtype: str = "float") -> str:
    """An initializer of random numbers, the same for the same name and shape."""
    rng = np.random.default_rng([len(name), *name.encode(), *shape])
    values = np.round(rng.uniform(0.5 if positive else -1.0, 1.5, shape), 3)
    dims = f"[{','.join(map(str, shape))}]" if shape else ""
    return f"{dtype}{dims} {name} = {{{','.join(map(str, values.reshape(-1)))}}}"


def conv_graph(
    conv: str,
    weight: tuple[int, ...],
    channels: int,
    body: str,
    *,
    constants: str = "",
    outputs: str = "",
    inputs: str = "",
    dtype: str = "float",
    shape: str | None = None,
) -> str:
    """``c = conv`` followed by ``body``, which makes y of ``shape``: by default that of c."""
    rank = len(weight) - 2
    groups = int(conv.split("group=")[1][0]) if "group=" in conv else 1
    width = weight[0] if conv.startswith("ConvTranspose") else weight[1] * groups
    shape = shape or ",".join(["N", str(channels), *"?" * rank])
    listed = ", ".join(filter(None, [tensor("w", weight, dtype=dtype), constants]))
    return (
        f"g ({dtype}[N,{width},{SPATIAL[rank]}] x{inputs}) => ({dtype}[{shape}] y{outputs}) "
        f"<{listed}> {{ c = {conv} {body} }}"
    )
