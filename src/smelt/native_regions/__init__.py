"""Native regions: parts of a model for ONNX Runtime that run as our own C.

Each region is one node of ``native_regions::REGION`` in the model, and a custom operator in a
shared library of this machine that a session registers.
"""
