"""QuantizeLinear, DequantizeLinear and what stands between them.

What makes a model quantized does not belong here.
"""
