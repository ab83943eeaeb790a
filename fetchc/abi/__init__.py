"""Where calling conventions put parameters and results.

One engine a scheme (:mod:`fetchc.abi.eightbyte`, :mod:`fetchc.abi.words`,
:mod:`fetchc.abi.go`); the registers and rules of each convention are data in ``targets/abi``.
"""

from __future__ import annotations

from fetchc.abi.choose import convention_for, go_version
from fetchc.abi.places import (
    argument_place,
    entry_places,
    parameter_places,
    result_place,
    result_places,
)

__all__ = [
    "argument_place",
    "convention_for",
    "entry_places",
    "go_version",
    "parameter_places",
    "result_place",
    "result_places",
]
