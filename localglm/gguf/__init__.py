"""Container, shards, key and name aliases: what is in a GGUF model set. Knows numpy and quant.types only."""
