"""Rows of the target ``coreml``, by subject.

A row is decorated with ``@writes(ONNX operators)``. It writes operations of MIL, Core ML's program
language, for one node, and passes their results to ``Call.done``. It raises Refused if Core ML
cannot compute the node. "Write mul" in a docstring means: write the MIL operation ``mul``.
"""
