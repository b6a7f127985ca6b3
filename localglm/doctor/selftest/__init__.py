"""The self-test: every op of a back end against its definition, on the user's own device."""

from localglm.doctor.selftest.draw import matrix
from localglm.doctor.selftest.once import once
from localglm.doctor.selftest.record import Card, Result, SelfTest, Step, Verdict
from localglm.doctor.selftest.remember import keep, remembered
from localglm.doctor.selftest.run import Options, run

__all__ = [
    "Card",
    "Options",
    "Result",
    "SelfTest",
    "Step",
    "Verdict",
    "keep",
    "matrix",
    "once",
    "remembered",
    "run",
]
