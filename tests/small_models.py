"""Small models as ONNX text."""

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'
MODEL = HEADER + (
    "g (float[B,4] x) => (float[B,4] y) <float[4,4] w = "
    "{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> { a = Identity(x)  h = MatMul(a, w)  y = Relu(h) }"
)
