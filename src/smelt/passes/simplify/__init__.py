"""Arithmetic, shapes and control flow with fewer nodes, whatever the operators around them are for.

What makes one operator of a subject (a norm, an attention) belongs into the folder of that subject.
"""
