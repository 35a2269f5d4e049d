"""``onnxruntime.quantization``: quantize_dynamic and quantize_static."""

from smelt.consumers.consumer import Consumer

CLASH = (
    "quantize_dynamic looks operators up without their domain, and replaces ONNX's {0} by one of "
    "com.microsoft that takes other operands"
)

quantize = Consumer(
    "quantize",
    "onnxruntime.quantization, before quantize_dynamic or quantize_static",
    "onnxruntime 1.31, quantization/registry.py; results tried with both functions",
    opsets=(11, 22),
    defects=(
        "quantize_static numbers positions by a quantized logarithm in T5 encoders of open sizes, "
        "and the result fails as it runs: fix the sizes (measured)",
        "quantize_static with QuantFormat.QOperator refuses a Where that reads a quantized value; "
        "QDQ takes it (measured)",
    ),
    refused={"Attention": CLASH.format("Attention")},
)
