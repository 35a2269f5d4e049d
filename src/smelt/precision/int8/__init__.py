"""Quantize products to 8 or 4 bits: find candidates, search for a set within the error, write it.

A candidate has up to three forms. ``static``: int8 weights and activations, whose scales come from
measured ranges. ``dynamic``: int8 weights, and activations quantized in each run. ``weights``: int8
or int4 weights alone, which are dequantized before the product.
"""
