"""localglm: GLM-5.3-Flash on a personal computer. Importing this package loads nothing else."""

__version__ = "0.1.0"
