"""The demo model's mathematics in torch: the same architecture as the product, for training."""
