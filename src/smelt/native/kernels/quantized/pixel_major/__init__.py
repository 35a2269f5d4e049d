"""Products of bytes for CPUs without vectors, from images with their channels side by side.

The image is copied a band at a time, as 16-bit integers with all channels of a pixel side by side.
A result is then the sum of a few contiguous runs, in pairs: one instruction adds two products where
the CPU has the DSP extension of Arm.

The C stands in the ``.h`` files of this folder; words in capitals are replaced (``c_text.py``).
"""
