"""Choose the bits of each value by measured ranges and measured errors."""
