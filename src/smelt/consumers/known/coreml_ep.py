"""ONNX Runtime's Core ML provider, format MLProgram."""

from smelt.consumers.consumer import Consumer, Takes, takes

FLAT = Takes(ranks=(4, 4))
"""Poolings of images only, not of volumes."""

coreml_ep = Consumer(
    "coreml-ep",
    "ONNX Runtime's Core ML provider (MLProgram)",
    "onnxruntime 1.31, tools/mobile_helpers/coreml_supported_mlprogram_ops.md and its checker",
    opsets=(13, 20),
    operators=takes(
        "Add And ArgMax Cast Ceil Clip Concat Cos Div Elu Erf Exp Gelu GroupNormalization "
        "HardSigmoid Identity InstanceNormalization LayerNormalization LeakyRelu MatMul Max Mul "
        "PRelu Pow Reciprocal ReduceMax ReduceMean ReduceSum Relu Reshape Round Shape "
        "Sigmoid Sin Softmax Softplus Sqrt Squeeze Sub Tanh Transpose Unsqueeze Where",
        AveragePool=FLAT,
        Conv=Takes(ranks=(3, 4), constant=(2,)),
        ConvTranspose=Takes(
            ranks=(3, 4),
            constant=(1, 2),
            attributes={"auto_pad": ("NOTSET", "VALID")},
        ),
        DepthToSpace=Takes(),
        GatherND=Takes(attributes={"batch_dims": (0,)}),
        Gemm=Takes(constant=(1,), attributes={"transA": (0,), "alpha": (1.0,), "beta": (1.0,)}),
        GlobalAveragePool=FLAT,
        GlobalMaxPool=FLAT,
        GridSample=Takes(ranks=(4, 4), attributes={"mode": ("linear", "bilinear")}),
        MaxPool=FLAT,
        Resize=Takes(gaps=False),
        Slice=Takes(constant=(1, 2, 3, 4)),
        Split=Takes(constant=(1,)),
        Tile=Takes(ranks=(0, 5)),
    ),
    max_rank=5,
    fixed_sizes=True,
    prefers="expand-high-rank-reshape-and-transpose",
)
