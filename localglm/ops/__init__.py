"""The operations of the model: their definition and how each is checked."""
