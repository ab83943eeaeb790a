"""fetchc: typed argument expressions of a program, compiled to the kernel's fetch-args.

The names below are the library's face. They are loaded when first used: importing
the package reads nothing else.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.answers.batch_questions import bulk
    from fetchc.api.library import Program, open
    from fetchc.api.live_tracing import Tracing, tracing
    from fetchc.api.probe import Argument, Probe
    from fetchc.debuginfo.environment import CacheFolder, Environment
    from fetchc.diag.diagnostic import (
        CompileError,
        DebugInfoError,
        Diagnostic,
        Error,
        TracerError,
    )
    from fetchc.driver.visible_members import VisibleMember as Member
    from fetchc.driver.visible_variables import VisibleVariable as Variable
    from fetchc.tracer.events import Event

__version__ = "0.1.0"

__all__ = [
    "Argument",
    "CacheFolder",
    "CompileError",
    "DebugInfoError",
    "Diagnostic",
    "Environment",
    "Error",
    "Event",
    "Member",
    "Probe",
    "Program",
    "TracerError",
    "Tracing",
    "Variable",
    "__version__",
    "bulk",
    "open",
    "tracing",
]

_HOMES = {
    "Argument": "fetchc.api.probe",
    "CacheFolder": "fetchc.debuginfo.environment",
    "CompileError": "fetchc.diag.diagnostic",
    "DebugInfoError": "fetchc.diag.diagnostic",
    "Diagnostic": "fetchc.diag.diagnostic",
    "Environment": "fetchc.debuginfo.environment",
    "Error": "fetchc.diag.diagnostic",
    "Event": "fetchc.tracer.events",
    "Member": "fetchc.driver.visible_members",
    "Probe": "fetchc.api.probe",
    "Program": "fetchc.api.library",
    "TracerError": "fetchc.diag.diagnostic",
    "Tracing": "fetchc.api.live_tracing",
    "Variable": "fetchc.driver.visible_variables",
    "bulk": "fetchc.answers.batch_questions",
    "open": "fetchc.api.library",
    "tracing": "fetchc.api.live_tracing",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'fetchc' has no attribute {name!r}")
    own = f"Visible{name}" if name in ("Member", "Variable") else name
    return getattr(__import__(home, fromlist=[own]), own)


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})
