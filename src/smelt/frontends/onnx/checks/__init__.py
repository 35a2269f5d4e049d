"""One file for each subject that the ONNX specification speaks of; ``check.py`` calls them."""
