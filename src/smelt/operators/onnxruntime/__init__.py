"""Facts about ONNX Runtime: operators that it lacks, computes wrong, or has of its own."""
