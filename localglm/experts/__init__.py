"""Experts that do not fit into memory: read from the file, kept as long as they are wanted."""

from localglm.experts.layout import expert_bytes, minimum_memory
from localglm.experts.opening import open_home
from localglm.experts.statistics import HomeStatistics
from localglm.experts.streamed import StreamedHome

__all__ = ["HomeStatistics", "StreamedHome", "expert_bytes", "minimum_memory", "open_home"]
