"""Sessions: compiled models that run on arrays by name, as in ONNX Runtime."""
