"""Time the candidate orders between blocks and check their bits.

    python benchmarks/spike/run.py --target cpu|cuda|wgpu [--quick] [--prepare]
"""

from __future__ import annotations

import argparse


def main() -> None:
    """Run one target and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=("cpu", "cuda", "wgpu"), required=True)
    parser.add_argument("--quick", action="store_true", help="small shapes: does it work?")
    parser.add_argument(
        "--prepare", action="store_true", help="cuda: only compile the kernels, for another machine"
    )
    args = parser.parse_args()
    # One target's packages need not be installed for another's run.
    if args.target == "cpu":
        import cpu

        cpu.measure(quick=args.quick)
    elif args.target == "cuda":
        import cuda

        cuda.prepare() if args.prepare else cuda.measure(quick=args.quick)
    else:
        import webgpu

        webgpu.measure(quick=args.quick)


if __name__ == "__main__":
    main()
