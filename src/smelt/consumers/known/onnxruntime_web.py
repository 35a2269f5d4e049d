"""ONNX Runtime Web's WebAssembly provider, for browsers and Node."""

from smelt.consumers.consumer import Consumer

onnxruntime_web = Consumer(
    "onnxruntime-web",
    "ONNX Runtime Web's WebAssembly provider",
    "onnxruntime-web 1.30 in Node 20: exports, opened and run",
    opsets=(7, 23),
    is_onnx_runtime=True,
)
