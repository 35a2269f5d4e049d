"""Changes of inputs, outputs, opset and names, made on request only.

Each records what it did, so that verification follows it.
"""
