"""TensorFlow Lite, by way of onnx2tf."""

from smelt.consumers.consumer import Consumer, takes

tflite = Consumer(
    "tflite",
    "onnx2tf, which writes TensorFlow Lite",
    "onnx2tf 1.29.24, its list of operators",
    opsets=(9, 23),
    operators=takes(
        "Abs Acos Acosh Add AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention "
        "AveragePool BatchNormalization Bernoulli BitShift BitwiseAnd BitwiseNot BitwiseOr "
        "BitwiseXor BlackmanWindow Cast Ceil Celu CenterCropPad Clip Compress Concat "
        "ConcatFromSequence ConstantOfShape Conv ConvTranspose Cos Cosh CumSum DepthToSpace "
        "DequantizeLinear Det Div Dropout DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand "
        "EyeLike Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool "
        "GlobalLpPool GlobalMaxPool Greater GreaterOrEqual GroupNormalization HardSigmoid "
        "HardSwish Hardmax Identity If InstanceNormalization IsInf IsNaN LRN LSTM "
        "LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax Loop LpNormalization LpPool "
        "MatMul MatMulInteger Max MaxPool MaxRoiPool MaxUnpool Mean MeanVarianceNormalization "
        "MelWeightMatrix Min Mish Mod Mul Multinomial Neg NegativeLogLikelihoodLoss "
        "NonMaxSuppression NonZero Not OneHot Or PRelu Pad Pow QLinearConv QLinearMatMul "
        "QuantizeLinear RMSNormalization RNN Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum "
        "ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu "
        "Reshape Resize ReverseSequence RoiAlign RotaryEmbedding Round Scan ScatterElements "
        "ScatterND Selu Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax "
        "SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Tan "
        "Tanh TensorScatter ThresholdedRelu Tile TopK Transpose Trilu Unique Unsqueeze Where Xor"
    ),
    defects=("Col2Im, ConvInteger, DFT, DeformConv, GridSample and STFT in part (the same list)",),
)
