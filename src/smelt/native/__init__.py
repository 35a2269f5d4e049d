"""The C engine: kernels, types, weights, schedule and memory of a program.

It lies below targets, which choose files and entry points, and above the runtime. No code here
depends on a target; each kernel is a row in a table of ``kernels/``.
"""
