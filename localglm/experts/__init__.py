"""Experts that do not fit into memory: read from the file, kept as long as they are wanted."""

from localglm.experts.layout import expert_bytes, minimum_memory

__all__ = ["expert_bytes", "minimum_memory"]
