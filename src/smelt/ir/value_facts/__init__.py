"""Facts about the elements of a value, proved from its producers: bounds, and affine forms."""
