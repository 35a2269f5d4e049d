"""Requirements of ONNX on operands and attributes: one fact per row, one subject per file.

A row states a requirement in words, and checks it against the known facts about one node. A fact
belongs here if no run of the operator can succeed without it. Forms that runtimes accept although
ONNX forbids them do not belong here.
"""
