"""BatchNormalization is folded into the Conv or ConvTranspose before it."""

import numpy as np
import pytest
from convolutions import CASES, conv_graph, tensor
from rewrites import check_operators, check_unchanged

from smelt.ir.constants import tensor_of
from smelt.passes.convolution.fuse_conv_batchnorm import fuse_conv_batchnorm

NORMALIZE = "y = BatchNormalization<epsilon=0.001>(c, scale, shift, mean, variance)"


def statistics(channels: int, dtype: str = "float") -> str:
    names = ("scale", "shift", "mean", "variance")
    return ", ".join(tensor(n, (channels,), n == "variance", dtype) for n in names)


def graph(
    conv: str = "Conv(x, w)",
    weight: tuple[int, ...] = (4, 2, 3),
    *,
    bias: bool = False,
    channels: int = 4,
    normalize: str = NORMALIZE,
    dtype: str = "float",
    body: str = "",
    outputs: str = "",
    overridable: str = "",
) -> str:
    constants = statistics(channels, dtype)
    if bias:
        constants += ", " + tensor("b", (channels,), dtype=dtype)
    return conv_graph(
        conv,
        weight,
        channels,
        f"{body} {normalize}",
        constants=constants,
        outputs=outputs,
        inputs=overridable,
        dtype=dtype,
    )


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize(("conv", "weight", "channels"), CASES.values(), ids=CASES.keys())
def test_fuses(conv: str, weight: tuple[int, ...], channels: int, bias: bool) -> None:
    text = graph(
        conv.replace("w)", "w, b)") if bias else conv, weight, bias=bias, channels=channels
    )
    kind = conv.split("<", maxsplit=1)[0].split("(", maxsplit=1)[0]
    check_operators(fuse_conv_batchnorm, text, [kind], modes=("normal",))


@pytest.mark.parametrize("opset", [9, 13, 15, 23])
def test_fuses_at_every_opset(opset: int) -> None:
    check_operators(fuse_conv_batchnorm, graph(), ["Conv"], opset=opset, modes=("normal",))


def test_a_shared_weight_stays_for_its_other_reader() -> None:
    text = graph(body="z = Conv(x, w)", outputs=", float[N,4,?] z")
    model = check_operators(fuse_conv_batchnorm, text, ["Conv", "Conv"], modes=("normal",))
    weights = [node.inputs[1] for node in model.graph]
    assert weights[0] is not weights[1]


def test_folds_in_float64_and_keeps_the_dtype() -> None:
    text = graph(dtype="double")
    model = check_operators(fuse_conv_batchnorm, text, ["Conv"], modes=("normal",))
    weight = next(iter(model.graph)).inputs[1]
    assert weight is not None
    folded = tensor_of(weight)
    assert folded is not None
    assert folded.numpy().dtype == np.float64


TRAINING = (
    "y, m, v = BatchNormalization<training_mode=1, epsilon=0.001>(c, scale, shift, mean, variance)"
)
KEPT = {
    "training": graph(normalize=TRAINING),
    "training with one output": graph(normalize=NORMALIZE.replace("<", "<training_mode=1, ")),
    "convolution is an output": graph(outputs=", float[N,4,?] c"),
    "convolution read elsewhere": graph(body="z = Neg(c)", outputs=", float[N,4,?] z"),
    "weight is an input": graph("Conv(x, v)", overridable=", float[4,2,3] v"),
    "weight has a default": graph(
        "Conv(x, v)", overridable=", float[1,2,1] v = {1.0,2.0}", weight=(1, 2, 1), channels=1
    ),
    "scale is an input": graph(
        normalize=NORMALIZE.replace("scale", "s"), overridable=", float[4] s"
    ),
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_keeps(text: str) -> None:
    check_unchanged(fuse_conv_batchnorm, text)


def test_keeps_training_before_opset_14() -> None:
    outputs = "y, m, v, sm, sv = BatchNormalization(c, scale, shift, mean, variance)"
    check_unchanged(fuse_conv_batchnorm, graph(normalize=outputs), opset=9)


def test_keeps_a_variance_that_leaves_no_finite_weight() -> None:
    negative = graph(
        normalize=NORMALIZE.replace("variance", "nothing"), channels=1, weight=(1, 2, 1)
    )
    text = negative.replace("<float[1,2,1] w", "<float[1] nothing = {-1.0}, float[1,2,1] w")
    check_unchanged(fuse_conv_batchnorm, text)
