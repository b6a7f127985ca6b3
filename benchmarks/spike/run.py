"""Time the candidate orders between blocks and check their bits.

python benchmarks/spike/run.py --target cpu|cuda|wgpu [--quick] [--prepare]
"""

from __future__ import annotations

import argparse
import importlib


def main() -> None:
    """Run one target and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=("cpu", "cuda", "wgpu"), required=True)
    parser.add_argument("--quick", action="store_true", help="small shapes: does it work?")
    parser.add_argument(
        "--prepare", action="store_true", help="cuda: only compile the kernels, for another machine"
    )
    args = parser.parse_args()
    # Loaded by name: one target's packages need not be installed for another's run.
    target = importlib.import_module("webgpu" if args.target == "wgpu" else args.target)
    if args.prepare:
        target.prepare()
    else:
        target.measure(quick=args.quick)


if __name__ == "__main__":
    main()
