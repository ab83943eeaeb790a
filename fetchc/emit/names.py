"""Names of arguments, events and groups, made from what the user wrote.

All three must be C identifiers for the kernel (kernel/trace/trace_probe.c,
``is_good_name``); none may be one that the kernel, a filter or ``perf`` takes for
something else.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from fetchc.target.kernel_versions import Kernel

__all__ = ["argument_name", "event_name", "group_name", "is_identifier"]

# One byte less than a kernel takes, for readers that keep the NUL in the same buffer.
_ARGUMENT_BYTES = 31
_EVENT_BYTES = 63  # MAX_EVENT_NAME_LEN less its NUL; the same in every version
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_WORD = re.compile(r"[A-Za-z0-9_]+")
_BRACKETS = {"(": ")", "[": "]", "<": ">", "{": "}"}
# Parts that say nothing alone: Go numbers what has no name (main.main.func1, main.init.0), and
# both it and gcc mark what they made of a function (main.(*T).Get-fm, do_work.constprop.0).
_SUFFIX = re.compile(r"((func|gowrap|deferwrap)?[0-9]+|fm|constprop|part|isra|cold|lto_priv)\Z")
# Files in the folder of a group, where each event is a folder: one of that name hides the file
# (fs/tracefs, system_callback of kernel/trace/trace_events.c).
_FILES = ("enable", "filter")
_OPERATOR = re.compile(r"\boperator\b.*")


def is_identifier(text: str) -> bool:
    """Whether ``text`` is an identifier of C, which has no letters beyond ASCII here."""
    return _IDENTIFIER.match(text) is not None


def argument_name(expression: str, kernel: Kernel, taken: Container[str] = ()) -> str:
    """A C identifier that reads like ``expression``.

    ``r->Question[0].Name`` is ``r_Question_0_Name``. At most 31 bytes, the front being cut
    at a word; none of ``taken``, of the names that the kernel reserves or that mislead
    filters, nor ``argN``, which the kernel gives to arguments without a name.
    """
    words = _WORD.findall(expression)
    while len(words) > 1 and len("_".join(words)) > _ARGUMENT_BYTES:
        del words[0]
    name = _identifier("_".join(words), "value")[:_ARGUMENT_BYTES]
    refused = kernel.reserved_names + kernel.confusing_names
    if name in refused or re.match(r"arg[0-9]+\Z", name):
        name = name[: _ARGUMENT_BYTES - 1] + "_"
    return _unique(name, taken, _ARGUMENT_BYTES)


def event_name(function: str, taken: Container[str] = ()) -> str:
    """A C identifier for probes of ``function``.

    ``main.(*server).handleRequest`` is ``handleRequest``: the last part of the qualified
    name, without parameters and type arguments, and with the part before it where the last
    one is only a number or a compiler's mark. Never ``r`` and hexadecimal digits, which
    perf takes for a raw event (``rec``), nor what the kernel has in the folder of a group.
    """
    parts = _parts(function)
    first = len(parts) - 1
    while first > 0 and _SUFFIX.match(parts[first]):
        first -= 1
    name = _identifier("_".join(parts[first:]), "probe")
    if name in _FILES or re.match(r"r[0-9a-f]+\Z", name):
        name += "_"
    return _unique(name[:_EVENT_BYTES], taken, _EVENT_BYTES)


def group_name(path: str) -> str:
    """The group of probes of the file ``path``: ``fetchc_dns_forward`` for ``dns-forward``."""
    return ("fetchc_" + "_".join(_WORD.findall(os.path.basename(path))))[:_EVENT_BYTES]


def _identifier(text: str, otherwise: str) -> str:
    if not text.strip("_"):
        return otherwise
    return "_" + text if text[0].isdigit() else text


def _unique(name: str, taken: Container[str], limit: int) -> str:
    # The first number that is free, found by halves: a line of a batch may ask for one name
    # a hundred thousand times.
    if name not in taken:
        return name
    last, free = 1, 2
    while _numbered(name, free, limit) in taken:
        last, free = free, 2 * free
    while free - last > 1:
        middle = (last + free) // 2
        if _numbered(name, middle, limit) in taken:
            last = middle
        else:
            free = middle
    return _numbered(name, free, limit)


def _numbered(name: str, number: int, limit: int) -> str:
    suffix = f"_{number}"
    return name[: limit - len(suffix)] + suffix


def _parts(function: str) -> list[str]:
    # The words of the qualified name that stand outside of brackets; where there is none,
    # as in (anonymous namespace), those inside.
    outside, depth = [], 0
    for character in function:
        if character in _BRACKETS:
            depth += 1
            outside.append(" ")
        elif depth and character in _BRACKETS.values():
            depth -= 1
        elif not depth:
            outside.append(character)
    return _qualified("".join(outside)) or _qualified(function)


def _qualified(text: str) -> list[str]:
    # C++ writes the return type of a template before its name, and that of a conversion
    # behind "operator".
    joined = re.sub(r"\s*(::|\.|/)\s*", ".", text.strip())
    operator = _OPERATOR.search(joined)
    if operator:
        return ["_".join(_WORD.findall(operator[0]))]
    return _WORD.findall(joined.split()[-1]) if joined.split() else []
