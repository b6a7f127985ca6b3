"""Experts that do not fit into memory: read from the file, kept as long as they are wanted."""

from localglm.experts.layout import expert_bytes, minimum_memory
from localglm.experts.mapped import MappedHome
from localglm.experts.opening import open_home, open_mapped_home
from localglm.experts.statistics import HomeStatistics
from localglm.experts.streamed import StreamedHome

__all__ = [
    "HomeStatistics",
    "MappedHome",
    "StreamedHome",
    "expert_bytes",
    "minimum_memory",
    "open_home",
    "open_mapped_home",
]
