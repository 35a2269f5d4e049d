"""Shared parts of kernels on quantized integers: those with scales and zero points."""
