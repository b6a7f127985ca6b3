"""Native C kernels with their own worker pool."""
