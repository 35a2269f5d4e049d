"""The methods to compute a convolution, one file each."""
