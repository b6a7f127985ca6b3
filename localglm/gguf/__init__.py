"""Container, shards, key and name aliases: what is in a GGUF model set.

Knows numpy and ``quant.types`` only.
"""

from localglm.gguf.file import ModelFile, open_model
from localglm.gguf.header import TensorInfo
from localglm.gguf.strings import StringArray

__all__ = ["ModelFile", "StringArray", "TensorInfo", "open_model"]
