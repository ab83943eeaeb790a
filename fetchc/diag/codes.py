"""Every diagnostic code with its title. Numbers are never reused.

The first two digits say which question failed: 01 the text, 02 names, 03 types,
04 places, 05 the kernel's rules, 06 warnings (right, but it can surprise), 09 files.

To add one: a line here, a long text in :mod:`fetchc.diag.explain`, the place that
raises it, a case under ``corpus/diagnostics/``. Tests hold the four together.
"""

from __future__ import annotations

__all__ = ["TITLES"]

TITLES = {
    "FC0101": "the expression does not parse",
    "FC0102": "the expression is too long or nested too deeply",
    "FC0103": "the expression asks for something of a later release",
    "FC0104": "the expression is empty",
    "FC0201": "no variable of that name is visible at the probe point",
    "FC0202": "no function of that name has code in the file",
    "FC0203": "several functions have that name",
    "FC0204": "no type of that name is defined in the file",
    "FC0205": "the architecture has no register of that name",
    "FC0206": "the probe point cannot be found or probed",
    "FC0207": "an argument name is not one the kernel takes",
    "FC0208": "a name means several things",
    "FC0301": "member access on something that is not a structure",
    "FC0302": "the structure has no member of that name",
    "FC0303": "an index is outside of its array",
    "FC0304": "indexing something that is not an array, slice or pointer",
    "FC0305": "dereferencing something that is not a pointer",
    "FC0306": "a cast that would change the value",
    "FC0307": "the format does not fit the type",
    "FC0308": "arithmetic that no fetch-arg can do",
    "FC0309": "len or cap of something that has none",
    "FC0310": "the value is a function",
    "FC0311": "the type is only declared, or has no size",
    "FC0312": "the value is more than one fetch-arg can hold",
    "FC0401": "the variable has no place at the probe point",
    "FC0402": "the value is in a vector register",
    "FC0403": "the variable is thread-local",
    "FC0404": "the value lies in several pieces",
    "FC0405": "an address cannot be a fetched value",
    "FC0406": "the value is computed and in no memory",
    "FC0407": "the debug information and the calling convention disagree",
    "FC0408": "a pointer narrower than a machine word cannot be followed",
    "FC0409": "a return probe would crash the Go program",
    "FC0410": "the result is only there when the function returns",
    "FC0501": "the fetch-arg is longer than the kernel takes",
    "FC0502": "the fetch-arg has more dereferences than the kernel takes",
    "FC0503": "a group or event name is not one the kernel takes",
    "FC0504": "more arguments than the kernel takes for one event",
    "FC0505": "an array count that the kernel does not take",
    "FC0506": "the kernel is too old for this",
    "FC0507": "the type is not legal on this base",
    "FC0508": "the event is bigger than the kernel takes",
    "FC0509": "the definition is longer than the kernel takes",
    "FC0510": "the path cannot be written in a definition",
    "FC0511": "an offset that the kernel would silently truncate",
    "FC0512": "the kernel does not know the register",
    "FC0513": "a bit field that the kernel does not take",
    "FC0601": "a Go string has no NUL at its end",
    "FC0602": "the place comes from one source against another",
    "FC0603": "the function is also inlined, where the probe does not see it",
    "FC0604": "a character array may have no NUL at its end",
    "FC0605": "members of a whole structure were left out",
    "FC0606": "nothing is known of the code at the probed address",
    "FC0607": "an executable may hold the live copy of a library's variable",
    "FC0901": "the file cannot be read",
    "FC0902": "the file is not an ELF file",
    "FC0903": "the file has no debug information",
    "FC0904": "the debug information is malformed",
    "FC0905": "the debug information uses something that fetchc does not read",
}
