"""The ``localglm`` command, and ``python -m localglm``, which is the same.

Importing what a command needs takes a noticeable moment; Ctrl-C in it ends the program quietly.
"""

import os
import signal
from types import FrameType
from typing import NoReturn

_INTERRUPTED = 130


def main() -> NoReturn:
    """Run the program."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        # An interrupt raised inside an import may be swallowed by it, so the process just ends.
        signal.signal(signal.SIGINT, _leave)
    from localglm.cli.app import main as program  # noqa: PLC0415

    try:
        signal.signal(signal.SIGINT, handler)
        program()
    except KeyboardInterrupt:
        _leave(signal.SIGINT, None)
    raise AssertionError


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
