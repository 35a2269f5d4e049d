"""Simplify arithmetic, shapes and control flow, independent of the model's subject.

Passes that fuse one operator of a subject (a norm, an attention) belong into that subject's folder.
"""
