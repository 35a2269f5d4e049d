"""Changes of inputs, outputs, opset and names, made on request only.

Each pass records its changes, so that verification can follow them.
"""
