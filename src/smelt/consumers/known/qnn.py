"""ONNX Runtime's QNN provider, for Qualcomm's accelerators."""

from smelt.consumers.consumer import Consumer, Takes, takes

qnn = Consumer(
    "qnn",
    "ONNX Runtime's QNN provider (Qualcomm)",
    "onnxruntime-qnn, docs/execution_providers/QNN-ExecutionProvider.md (commit 0131740)",
    opsets=(11, 22),
    operators=takes(
        "Abs Add And ArgMax ArgMin Asin Atan AveragePool BatchNormalization Cast Ceil Clip Concat "
        "Conv ConvTranspose Cos CumSum DepthToSpace DequantizeLinear Div Einsum Elu Equal Exp "
        "Expand Flatten Floor Gather GatherElements GatherND Gelu Gemm GlobalAveragePool "
        "GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization HardSigmoid HardSwish "
        "Identity InstanceNormalization IsNaN LRN LSTM LayerNormalization LeakyRelu Less "
        "LessOrEqual Log LogSoftmax MatMul Max MaxPool Mean Min Mod Mul Neg NonZero Not Or PRelu "
        "Pad Pow QuantizeLinear RandomNormalLike RandomUniformLike Reciprocal ReduceL2 ReduceMax "
        "ReduceMean ReduceMin ReduceProd ReduceSum Relu Reshape Resize RoiAlign Round STFT "
        "ScatterElements ScatterND Sigmoid Sign Sin Slice Softmax Softplus SpaceToDepth Split Sqrt "
        "Squeeze Sub Sum Tan Tanh ThresholdedRelu Tile TopK Transpose Unsqueeze Where",
        LpNormalization=Takes(attributes={"p": (2,)}),
    ),
    fixed_sizes=True,
    narrow_integers=True,
    defects=("Gather takes indices from 0 on only (the same document)",),
)
