"""Time and memory to open a header of the real model's size.

Run: ``python benchmarks/header.py [--repeat 5]``. It writes a file with 154,880 tokens, 318,000
merges and 1,500 tensors to a temporary folder, opens it in fresh processes, and prints seconds and
resident memory.
"""

from __future__ import annotations

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

TOKENS, MERGES, TENSORS = 154_880, 318_000, 1_500
U32, I32, STRING, ARRAY = 4, 5, 8, 9

CHILD = """
import json, sys, time, psutil
from pathlib import Path
from localglm.gguf import open_model
def resident():
    return round(psutil.Process().memory_info().rss / 2**20, 1)
before = resident()
start = time.perf_counter()
with open_model(Path(sys.argv[1])) as file:
    opened = time.perf_counter() - start
    header = resident()
    tokens = list(file.metadata["tokenizer.ggml.tokens"])
    merges = list(file.metadata["tokenizer.ggml.merges"])
    decoded = time.perf_counter() - start - opened
    print(json.dumps({"tensors": len(file.tensors), "strings": len(tokens) + len(merges),
        "open_s": opened, "decode_s": decoded, "rss_before_mib": before, "rss_open_mib": header,
        "rss_decoded_mib": resident()}))
"""


def text(value: str) -> bytes:
    """Encode a string of the format."""
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def strings(key: str, values: list[str]) -> bytes:
    """Encode a key with a string array."""
    head = text(key) + struct.pack("<IIQ", ARRAY, STRING, len(values))
    return head + b"".join(map(text, values))


def header_file() -> bytes:
    """Build the file; its tensors hold one number each."""
    tokens = [f"\u0120tok{i}" for i in range(TOKENS)]
    merges = [f"\u0120m{i} n{i * 7 % 99991}" for i in range(MERGES)]
    pairs = [
        text("general.architecture") + struct.pack("<I", STRING) + text("glm5next"),
        strings("tokenizer.ggml.tokens", tokens),
        text("tokenizer.ggml.token_type")
        + struct.pack(f"<IIQ{TOKENS}i", ARRAY, I32, TOKENS, *[1] * TOKENS),
        strings("tokenizer.ggml.merges", merges),
        text("glm5next.block_count") + struct.pack("<II", U32, 46),
    ]
    infos = [
        text(f"blk.{i // 32}.tensor_number_{i}.weight") + struct.pack("<IQIQ", 1, 1, 0, 32 * i)
        for i in range(TENSORS)
    ]
    out = b"GGUF" + struct.pack("<IQQ", 3, TENSORS, len(pairs)) + b"".join(pairs + infos)
    return out + bytes(-len(out) % 32) + bytes(32 * TENSORS)


def main() -> None:
    """Print one JSON line per run, then the best."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "header.gguf"
        path.write_bytes(header_file())
        print(f"file of {path.stat().st_size / 2**20:.1f} MiB")
        runs = []
        for _ in range(options.repeat):
            command = [sys.executable, "-c", CHILD, str(path)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            runs.append(json.loads(output))
            print(output.strip())
    best = min(runs, key=lambda run: run["open_s"])
    print(f"open: {best['open_s']:.3f} s, {best['rss_open_mib']:.0f} MiB resident")


if __name__ == "__main__":
    main()
