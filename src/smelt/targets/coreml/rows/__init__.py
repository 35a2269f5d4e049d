"""Rows of the target: how each ONNX operator is written as operations of MIL, by subject."""
