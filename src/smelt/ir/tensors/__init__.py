"""Tensors of a model: their bytes, packed elements, and weights that are not in memory."""
