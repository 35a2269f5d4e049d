"""TensorRT's parser of ONNX files."""

from smelt.consumers.consumer import Consumer, Takes, takes

AXES = Takes(constant=(1,))
IMAGES = Takes(ranks=(4, 5), attributes={"dilations": ((1, 1), (1, 1, 1))})

tensorrt = Consumer(
    "tensorrt",
    "TensorRT",
    "onnx-tensorrt, docs/operators.md of TensorRT 10.0 (commit 96e7811); not run",
    opsets=(9, 20),
    operators=takes(
        "Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh BatchNormalization Cast "
        "CastLike Ceil Celu Clip Concat ConstantOfShape Conv ConvTranspose Cos Cosh DepthToSpace "
        "Div Dropout Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor GRU Gather "
        "GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater "
        "GreaterOrEqual GroupNormalization HardSigmoid HardSwish Hardmax Identity If "
        "InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual "
        "Log LogSoftmax Loop LpNormalization MatMul Max Mean MeanVarianceNormalization Min Mish "
        "Mod Mul Neg NonMaxSuppression Not OneHot Or PRelu Pow RNN Range Reciprocal Relu Reshape "
        "ReverseSequence RoiAlign Round Scan ScatterElements Selu Shape Shrink Sigmoid Sign Sin "
        "Sinh Size Softmax Softplus Softsign SpaceToDepth Split Sqrt Sub Sum Tan Tanh "
        "ThresholdedRelu Tile Transpose Trilu Where",
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
        Pad=Takes(constant=(3,)),
        QuantizeLinear=Takes(),
        Resize=Takes(
            attributes={
                "coordinate_transformation_mode": (
                    *("half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn"),
                    *("asymmetric", "align_corners"),
                )
            }
        ),
        ScatterND=Takes(attributes={"reduction": ("none",)}),
        Slice=Takes(constant=(3,)),
        TopK=Takes(attributes={"sorted": (1,)}),
    ),
    narrow_integers=True,
)
