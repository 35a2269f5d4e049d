"""The ways to compute a convolution, one file each."""
