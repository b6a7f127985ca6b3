"""Probes that misbehave, called in real child processes."""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import threading
from pathlib import Path

from localglm.devices.answers import DriverLibrary, RuntimeDevice
from localglm.devices.probes import AbsentError
from localglm.settings.load import environment


def answers() -> dict[str, object]:
    os.write(1, b"a driver greets on standard output\n")
    os.write(2, b"and complains on standard error\n")
    return {"greeting": "hello", "variable": environment().get("FAKE_VARIABLE", "")}


def is_absent() -> None:
    raise AbsentError("no such driver")


def fails() -> None:
    raise RuntimeError("the driver said no")


def leaves() -> None:
    sys.exit("a library ended the program")


def crashes() -> None:
    faulthandler._sigsegv()


def aborts() -> None:
    os.write(2, b"terminate called after throwing an instance of 'std::runtime_error'\n")
    os.abort()


def hangs() -> None:
    threading.Event().wait()


def hangs_with_a_child(pid_file: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
    Path(pid_file).write_text(str(child.pid))
    threading.Event().wait()


def answers_and_leaves_a_child(pid_file: str) -> dict[str, object]:
    # It holds the pipe of the record open, so that the parent sees no end of it.
    answer = _answer()
    os.set_inheritable(answer, True)
    code = "import threading; threading.Event().wait()"
    child = subprocess.Popen([sys.executable, "-c", code], close_fds=False)
    Path(pid_file).write_text(str(child.pid))
    return {"greeting": "hello"}


def prints_garbage() -> None:
    _to_the_parent(b"\x00\xffSegmentation fault (maybe)\n")


def prints_a_list() -> None:
    _to_the_parent(b"[1, 2, 3]")


def prints_an_odd_status() -> None:
    _to_the_parent(b'{"status": "fine", "said": "", "data": {}}')


def floods() -> None:
    answer = _answer()
    while True:
        os.write(answer, b"x" * 65536)


def ends_without_a_word() -> None:
    os._exit(0)


def ends_with_a_code() -> None:
    os._exit(3)


def dies_while_all_chips_are_visible() -> DriverLibrary:
    if environment().get("ROCR_VISIBLE_DEVICES") is None:
        os.abort()
    card = RuntimeDevice(index=0, name="Radeon RX 7900 XTX", pci_bus=3, pci_device=0)
    return DriverLibrary("libamdhip64.so.6", 60342134, (card,))


def _to_the_parent(answer: bytes) -> None:
    os.write(_answer(), answer)
    os._exit(0)


def _answer() -> int:
    """Find the pipe the child keeps for its record: the one above the standard streams."""
    return next(fd for fd in range(3, 64) if _is_pipe(fd))


def _is_pipe(fd: int) -> bool:
    import stat

    try:
        return stat.S_ISFIFO(os.fstat(fd).st_mode)
    except OSError:
        return False
