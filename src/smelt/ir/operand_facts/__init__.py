"""What ONNX demands of an operator's operands and attributes, a fact a row, a subject a file.

A row says in words what has to hold, and asks it of what is known of one node. It belongs here if
no run of the operator can succeed without it; what runtimes take all the same does not.
"""
