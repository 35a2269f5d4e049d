"""Requirements of ONNX on operands and attributes: one fact per row, one subject per file.

A row states a requirement in words, and checks it against the known facts about one node. A fact
belongs here if no run of the operator can succeed without it. Forms that runtimes accept although
ONNX forbids them do not belong here.

In the tables, ``n`` is the ``Operands`` of the node under test. A query such as ``n.size(0, 1)``
raises Unknown if the file leaves the answer open, and the row is then skipped.
"""
