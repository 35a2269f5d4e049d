"""ncnn, by way of pnnx."""

from smelt.consumers.consumer import Consumer, Takes, takes

IMAGES = Takes(ranks=(4, 4))
WEIGHTS = Takes(ranks=(3, 4), constant=(1, 2))
AFFINE = Takes(constant=(1, 2), present=(1, 2))
ONE_SAMPLE = Takes(samples=False)
"""With a constant of several samples, results are wrong or the run stops."""

NEAREST = {
    "mode": ("nearest",),
    "coordinate_transformation_mode": ("asymmetric",),
    "nearest_mode": ("floor",),
}
SMOOTH = {
    "mode": ("linear", "cubic"),
    "coordinate_transformation_mode": ("half_pixel", "pytorch_half_pixel", "align_corners"),
}

ncnn = Consumer(
    "ncnn",
    "ncnn, its converter pnnx",
    "pnnx and ncnn 20261020: a model of each operator, rank and batch, converted and run",
    opsets=(9, 17),
    operators=takes(
        "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Clip Cos Cosh Elu Erf Exp Flatten Floor "
        "GlobalAveragePool GlobalMaxPool HardSigmoid HardSwish Identity LeakyRelu Log LogSoftmax "
        "Neg Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax "
        "ReduceMean ReduceMin ReduceProd ReduceSumSquare Relu Reshape Round Selu Shrink Sigmoid "
        "Sign Sin Sinh Softmax Softplus Sqrt Squeeze Tan Tanh Transpose Unsqueeze",
        **dict.fromkeys(
            ("Add", "Concat", "Div", "MatMul", "Max", "Min", "Mul", "Sub", "Sum"), ONE_SAMPLE
        ),
        AveragePool=Takes(ranks=(4, 4), attributes={"ceil_mode": (0,)}),
        BatchNormalization=Takes(constant=(1, 2, 3, 4)),
        Conv=WEIGHTS,
        ConvTranspose=WEIGHTS,
        Gather=Takes(constant=(0,), attributes={"axis": (0,)}, unwritten=("axis",)),
        Gemm=Takes(constant=(1, 2)),
        GridSample=IMAGES,
        InstanceNormalization=AFFINE,
        LRN=IMAGES,
        LayerNormalization=AFFINE,
        MaxPool=IMAGES,
        PRelu=Takes(constant=(1,)),
        Pad=Takes(constant=(1, 2), attributes={"mode": ("constant", "reflect")}, written=("mode",)),
        # Powers of numbers below 0 are garbage but for squares.
        Pow=Takes(constant=(1,), values={1: (2,)}),
        Resize=Takes(attributes=NEAREST, otherwise=Takes(attributes=SMOOTH)),
        Slice=Takes(constant=(1, 2, 3, 4), values={4: (1,)}),
        Split=Takes(constant=(1,), present=(1,)),
    ),
    max_rank=4,
    fixed_sizes=True,
    prefers="drop-softmax-guard{products=true},expand-high-rank-reshape-and-transpose{max_rank=4}",
    defects=(
        "a Pad of the batch adds no samples (measured)",
        "a model of one Identity or Dropout stops pnnx (measured)",
    ),
)
