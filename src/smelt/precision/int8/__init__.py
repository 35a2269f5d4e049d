"""Integer products: which nodes get 8 or 4 bits, how they are written, and the search for a set."""
