"""Consumers: programs that read the ONNX files that smelt writes, and which operators each
supports.

A consumer is a value in a file of its own in ``known/``; there is no list of them. ``--for NAME``
chooses operators and opset for it, and lists the nodes that it does not support.
"""
