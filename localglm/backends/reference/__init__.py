"""The float64 definitions as a device: slow, and the judge of the others."""
