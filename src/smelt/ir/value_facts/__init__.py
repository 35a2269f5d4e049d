"""Facts about elements, proved from the producers of a value: affine in their index, bounds."""
