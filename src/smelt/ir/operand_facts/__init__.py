"""What ONNX requires of an operator's operands and attributes: one fact per row, one subject per
file.

A row states a requirement in words, and checks it against what is known of one node. A fact belongs
here if no run of the operator can succeed without it. What runtimes accept anyway does not belong
here.
"""
