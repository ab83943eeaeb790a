"""Where calling conventions put parameters and results.

One engine a scheme (:mod:`fetchc.abi.sysv_amd64`, :mod:`fetchc.abi.word_conventions`,
:mod:`fetchc.abi.go_abi`); the registers and rules of each convention are data in ``targets/abi``.
"""

from __future__ import annotations

from fetchc.abi.placement import (
    argument_place,
    convention_for,
    entry_places,
    parameter_places,
    result_place,
    result_places,
)

__all__ = [
    "argument_place",
    "convention_for",
    "entry_places",
    "parameter_places",
    "result_place",
    "result_places",
]
