"""TensorRT's parser of ONNX files."""

from smelt.consumers.consumer import Consumer, Takes, takes

AXES = Takes(constant=(1,))
IMAGES = Takes(ranks=(4, 5), attributes={"dilations": ((1, 1), (1, 1, 1))})

tensorrt = Consumer(
    "tensorrt",
    "TensorRT",
    "onnx-tensorrt, docs/operators.md of TensorRT 10.15",
    opsets=(9, 24),
    # Attention is left out: its mask must have 4 dims, and no cache may be joined to it.
    operators=takes(
        "Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh BatchNormalization "
        "BlackmanWindow Cast CastLike Ceil Celu Clip Concat ConstantOfShape Conv ConvTranspose "
        "Cos Cosh DepthToSpace Div Dropout Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor "
        "GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool "
        "GlobalMaxPool Greater GreaterOrEqual GroupNormalization HammingWindow HannWindow "
        "HardSigmoid HardSwish Hardmax Identity If InstanceNormalization IsInf IsNaN LRN LSTM "
        "LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax Loop LpNormalization MatMul "
        "Max Mean MeanVarianceNormalization Min Mish Mod Mul Neg NonMaxSuppression NonZero Not "
        "OneHot Or PRelu Pad Pow RMSNormalization RNN RandomNormal RandomNormalLike RandomUniform "
        "RandomUniformLike Range Reciprocal Relu Reshape ReverseSequence RoiAlign RotaryEmbedding "
        "Round Scan ScatterElements Selu Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax "
        "Softplus Softsign SpaceToDepth Split Sqrt Sub Sum Tan Tanh ThresholdedRelu Tile "
        "Transpose Trilu Where",
        **dict.fromkeys(
            (
                *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax"),
                *("ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
                *("CumSum", "Squeeze", "Unsqueeze"),
            ),
            AXES,
        ),
        AveragePool=IMAGES,
        DeformConv=Takes(ranks=(3, 4)),
        DequantizeLinear=Takes(),
        GridSample=Takes(ranks=(4, 4)),
        LpPool=IMAGES,
        MaxPool=IMAGES,
        QuantizeLinear=Takes(),
        Resize=Takes(
            attributes={
                "coordinate_transformation_mode": (
                    *("half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn"),
                    *("asymmetric", "align_corners"),
                ),
                "mode": ("nearest", "linear"),
                "nearest_mode": ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
                "keep_aspect_ratio_policy": ("stretch",),
                "antialias": (0,),
            }
        ),
        STFT=Takes(constant=(1, 2)),
        ScatterND=Takes(attributes={"reduction": ("none",)}),
        TensorScatter=Takes(ranks=(4, 4), attributes={"axis": (-2,)}),
        TopK=Takes(attributes={"sorted": (1,)}),
    ),
    narrow_integers=True,
    defects=("random operators ignore their seed (the same document)",),
)
