"""fetchc: typed argument expressions of a program, compiled to the kernel's fetch-args.

The names below are the library's face. They are loaded when first used: importing
the package reads nothing else.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.answers.bulk import bulk
    from fetchc.api import Argument, Probe, Program, Tracing, open, tracing
    from fetchc.diag.errors import CompileError, DebugInfoError, Error, TracerError

__version__ = "0.1.0"

__all__ = [
    "Argument",
    "CompileError",
    "DebugInfoError",
    "Error",
    "Probe",
    "Program",
    "TracerError",
    "Tracing",
    "__version__",
    "bulk",
    "open",
    "tracing",
]

_ERRORS = {"CompileError", "DebugInfoError", "Error", "TracerError"}


def __getattr__(name: str) -> object:
    if name in _ERRORS:
        from fetchc.diag import errors

        return getattr(errors, name)
    if name == "bulk":
        from fetchc.answers.bulk import bulk

        return bulk
    if name in __all__:
        from fetchc import api

        return getattr(api, name)
    raise AttributeError(f"module 'fetchc' has no attribute {name!r}")
