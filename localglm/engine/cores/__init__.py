"""Which processor cores this process may use, and how many threads that makes."""

from localglm.engine.cores.count import Cores, auto_threads, cores_here

__all__ = ["Cores", "auto_threads", "cores_here"]
