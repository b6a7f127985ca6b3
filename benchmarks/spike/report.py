"""One measured row, its table, and the medians every target uses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ORDERS = ("A", "B", "C", "D", "E")
FREE = "E"
BITS = {True: "equal", False: "DIFFER", None: "-"}


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of each order over the rounds, and whether its bits were the definition's."""

    kernel: str
    fmt: str
    unit: str  # "GB/s" or "GMAC/s"
    work: float  # giga-units of one call
    seconds: dict[str, NDArray[np.float64]]  # order -> [rounds]
    exact: dict[str, bool]
    control_differs: bool


def ratio_to(base: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the median over rounds of other / base: noise of a shared machine cancels."""
    return float(np.median(other / base))


def print_table(rows: list[Measured], read: float | None) -> None:
    """Print one line per kernel, format and order. ``read`` is the plain read in GB/s."""
    if read is not None:
        print(f"plain read: {read:.1f} GB/s")
    print("| kernel | type | order | rate | share of read | time / free | bits |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        for order, seconds in row.seconds.items():
            rate = row.work / float(np.median(seconds))
            share = f"{100 * rate / read:.0f} %" if read and row.unit == "GB/s" else "-"
            cost = ratio_to(row.seconds[FREE], seconds)
            bits = "free" if order == FREE else BITS[row.exact.get(order)]
            print(
                f"| {row.kernel} | {row.fmt} | {order} | {rate:.1f} {row.unit} | {share} "
                f"| {cost:.3f} | {bits} |"
            )
    print("control (order C against the definition of A differs):", end=" ")
    print("yes everywhere" if all(r.control_differs for r in rows) else "NO: the check is blind")


def same_bits(a: NDArray[np.float32], b: NDArray[np.float32]) -> bool:
    """Return whether two float32 arrays hold the same bits."""
    return bool(np.array_equal(a.view(np.uint32), b.view(np.uint32)))
