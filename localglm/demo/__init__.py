"""The demonstration model, ``demo.gguf``; made by ``training`` as docs/measurements says."""
