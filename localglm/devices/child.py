"""The inside of a probe's process: asks one question, prints one JSON record, ends.

What a driver prints goes to standard error; only the record reaches standard output.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from localglm.devices.probes import AbsentError

_LEAST_S = 0.1
_NO_CRASH_WINDOW = 0x0001 | 0x0002  # SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX


def main(arguments: Sequence[str]) -> None:
    """Answer ``NAME TARGET UNTIL ARGUMENTS...`` and end the process.

    UNTIL is a time of the system's monotonic clock. A process that takes longer ends by itself and
    says where it waited, also when nobody is there any more to kill it.
    """
    _name, target, until, *rest = arguments
    answer = os.dup(1)
    os.dup2(2, 1)
    faulthandler.enable()
    left = max(float(until) - time.monotonic(), _LEAST_S)
    faulthandler.dump_traceback_later(left, exit=True)
    _crash_quietly()
    reply = msgspec.json.encode(_reply(target, rest))
    while reply:
        reply = reply[os.write(answer, reply) :]
    # The exit handlers of a driver crash or hang at times, after all has been said.
    os._exit(0)


def _reply(target: str, arguments: Sequence[str]) -> dict[str, Any]:
    try:
        module, _, function = target.partition(":")
        probe: Callable[..., Any] = getattr(importlib.import_module(module), function)
        return {"status": "ok", "said": "", "data": msgspec.to_builtins(probe(*arguments))}
    except AbsentError as absent:
        return {"status": "absent", "said": str(absent), "data": {}}
    except BaseException as error:  # noqa: BLE001 - the edge of the process
        return {"status": "failed", "said": f"{type(error).__name__}: {error}", "data": {}}


def _crash_quietly() -> None:
    """Leave no core file and open no window when a driver crashes."""
    if sys.platform == "win32":
        ctypes.windll.kernel32.SetErrorMode(_NO_CRASH_WINDOW)
        return
    import resource  # noqa: PLC0415 - not on Windows

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    from localglm.devices.survey import probe_named

    asked = probe_named(sys.argv[1])
    deadline = time.monotonic() + asked.seconds
    main([asked.name, asked.target, str(deadline), *asked.arguments, *sys.argv[2:]])
