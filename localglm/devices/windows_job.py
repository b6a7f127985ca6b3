"""A Windows job object: processes that end together, also those whose parent is gone already.

Windows keeps no tie between a process and the ones it left behind; a job does.
"""

from __future__ import annotations

import ctypes
import sys


class Job:
    """Holds a process and everything it starts; ``end`` kills what is left of them.

    On other systems, and where Windows refuses a job, it does nothing.
    """

    def __init__(self, process_handle: int) -> None:
        self._job: int | None = None
        if sys.platform == "win32":
            kernel = ctypes.WinDLL("kernel32")
            kernel.CreateJobObjectW.restype = ctypes.c_void_p
            kernel.AssignProcessToJobObject.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
            job = kernel.CreateJobObjectW(None, None)
            if job and kernel.AssignProcessToJobObject(job, process_handle):
                self._job = job

    def end(self) -> None:
        """Kill every process of the job."""
        if sys.platform == "win32" and self._job is not None:
            kernel = ctypes.WinDLL("kernel32")
            kernel.TerminateJobObject.argtypes = [ctypes.c_void_p, ctypes.c_uint]
            kernel.CloseHandle.argtypes = [ctypes.c_void_p]
            kernel.TerminateJobObject(self._job, 1)
            kernel.CloseHandle(self._job)
            self._job = None
