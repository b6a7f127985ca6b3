"""Generated conversations, their encoding, and the stream of packed batches."""
