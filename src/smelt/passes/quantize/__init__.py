"""Passes for QuantizeLinear, DequantizeLinear and the operators between them.

Passes that quantize a model do not belong here.
"""
