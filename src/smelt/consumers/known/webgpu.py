"""ONNX Runtime Web's WebGPU provider."""

from smelt.consumers.consumer import Consumer, Takes, takes

IMAGES = Takes(ranks=(3, 4))

webgpu = Consumer(
    "webgpu",
    "ONNX Runtime Web's WebGPU provider",
    "onnxruntime-web 1.30, docs/webgpu-operators.md",
    opsets=(7, 22),
    operators=takes(
        "Abs Acos Acosh Add ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization "
        "Cast Ceil Clip Concat Cos Cosh CumSum DFT DepthToSpace DequantizeLinear Div Einsum Elu "
        "Equal Erf Exp Expand Flatten Floor Gather GatherElements GatherND Gelu Gemm "
        "GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual HardSigmoid HardSwish "
        "If InstanceNormalization LayerNormalization LeakyRelu Less LessOrEqual Log MatMul MaxPool "
        "Mul Neg Not Pad Pow Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp "
        "ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize "
        "ScatterND Shape Sigmoid Sin Sinh Slice Softmax Split Sqrt Squeeze Sub Tan Tanh "
        "ThresholdedRelu Tile Transpose Unsqueeze Where",
        Conv=IMAGES,
        ConvTranspose=IMAGES,
        GridSample=Takes(newest=16),
    ),
    narrow_integers=True,
    defects=(
        "Reshape and Shape run on the CPU (the same document)",
        "Resize with align_corners does not shrink images (the same document)",
    ),
)
