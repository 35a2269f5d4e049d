"""Consumers: the programs that read an ONNX file that smelt writes, and what each of them takes.

A consumer is a value in a file of its own in ``known/``; no list names it. ``--for NAME`` chooses
operators and opset for it, and lists what it does not take.
"""
