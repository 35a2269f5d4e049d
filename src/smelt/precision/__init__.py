"""Choose the precision of each value, int4, int8, a half type or float32, by measured errors."""
