"""The checks of ONNX models, one file per subject of the specification; ``check.py`` calls them."""
