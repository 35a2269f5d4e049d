"""The engine that emits C: kernels, types, weights, the order and the memory of a program.

Below targets, which choose files and entry points around it, and above the runtime. Nothing here
knows a target; a kernel is a row in a table of ``kernels/``.
"""
