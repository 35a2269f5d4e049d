"""ONNX Runtime's NNAPI provider of Android."""

from smelt.consumers.consumer import Consumer, Takes, takes

IMAGES = Takes(ranks=(4, 4))
SCALES = (1, 2)
"""Scale and zero point of quantized operators."""

FLOAT, INT32 = 1, 6
"""Element types, as Cast names them."""

nnapi = Consumer(
    "nnapi",
    "ONNX Runtime's NNAPI provider (Android)",
    "onnxruntime 1.31, tools/mobile_helpers/nnapi_supported_ops.md and its checker; types of Cast "
    "from the source of its provider",
    opsets=(7, 20),
    operators=takes(
        "Abs Add BatchNormalization Clip Concat Div Elu Exp Flatten Floor Identity LRN "
        "LeakyRelu Log MatMul Max Min Mul Neg PRelu Pow ReduceMean Relu Reshape Sigmoid Sin Slice "
        "Softmax Sqrt Sub Tanh Transpose",
        AveragePool=IMAGES,
        Cast=Takes(attributes={"to": (FLOAT, INT32)}),
        Conv=Takes(ranks=(4, 4), constant=(1, 2)),
        DepthToSpace=Takes(attributes={"mode": ("DCR",)}),
        DequantizeLinear=Takes(constant=SCALES),
        Gather=Takes(),
        Gemm=Takes(),
        GlobalAveragePool=IMAGES,
        GlobalMaxPool=IMAGES,
        MaxPool=IMAGES,
        Pad=Takes(constant=(1, 2), attributes={"mode": ("constant",)}),
        QLinearConv=Takes(ranks=(4, 4), constant=(1, 2, 3, 4, 5, 6, 7, 8)),
        QLinearMatMul=Takes(constant=(1, 2, 4, 5, 6, 7)),
        QuantizeLinear=Takes(constant=SCALES),
        Resize=Takes(ranks=(4, 4), gaps=False),
        Split=Takes(constant=(1,)),
        Squeeze=Takes(constant=(1,)),
        Unsqueeze=Takes(constant=(1,)),
    ),
    max_rank=4,
    fixed_sizes=True,
    prefers="drop-softmax-guard{products=true},expand-high-rank-reshape-and-transpose{max_rank=4}",
)
