"""Rewrite equal computations to one form, so that later rules need one pattern.

A pass here makes nothing smaller by itself.
"""
