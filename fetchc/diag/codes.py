"""Every diagnostic code with its title. Numbers are never reused.

The first two digits say which question failed: 01 the text, 02 names, 03 types,
04 places, 05 the kernel's rules, 06 warnings (right, but it can surprise), 07 tracing,
08 toolchains (of `fetchc conformance`), 09 files.

To add one: a line here, a long text in :mod:`fetchc.diag.codes`, the place that
raises it, a case under ``corpus/diagnostics/``. Tests hold the four together.
"""

from __future__ import annotations

from pkgutil import get_data

__all__ = ["TITLES", "explain"]

TITLES = {
    "FC0101": "the expression does not parse",
    "FC0102": "the expression is too long or nested too deeply",
    "FC0103": "the expression asks for something of a later release",
    "FC0104": "the expression is empty",
    "FC0105": "a line of a batch is not a question",
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
    "FC0313": "a type assertion that cannot hold",
    "FC0401": "the variable has no place at the probe point",
    "FC0402": "the value is in a vector register",
    "FC0403": "the variable is thread-local",
    "FC0404": "the value lies in several pieces",
    "FC0405": "an address cannot be a fetched value",
    "FC0406": "the value is computed and in no memory",
    "FC0407": "the debug information and the calling convention disagree",
    "FC0408": "a pointer narrower than a machine word cannot be followed",
    "FC0409": "the returns of the function cannot be probed",
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
    "FC0514": "the output format cannot carry this",
    "FC0515": "an instruction that cannot be probed",
    "FC0516": "a probe that would harm the program",
    "FC0601": "a string with a length has no NUL at its end",
    "FC0602": "the place comes from one source against another",
    "FC0603": "the function is also inlined, where the probe does not see it",
    "FC0604": "a character array may have no NUL at its end",
    "FC0605": "members of a whole structure were left out",
    "FC0606": "nothing is known of what is at the probed place",
    "FC0607": "an executable may hold the live copy of a library's variable",
    "FC0608": "a signed number of a few bits is printed unsigned",
    "FC0609": "some calls end without passing the probed return instructions",
    "FC0610": "bpftrace may refuse to probe inside of a function",
    "FC0611": "perf prints signed numbers of one and two bytes unsigned",
    "FC0612": "a session that was killed left its definitions behind",
    "FC0613": "the traced file was replaced or deleted",
    "FC0614": "the dynamic type of an interface is not compared",
    "FC0615": "a method is found by its name without the star of its receiver",
    "FC0616": "the code of a source line begins at several addresses",
    "FC0617": "copies of an inlined function may be missing",
    "FC0618": "the runtime replaces the code after some calls",
    "FC0619": "the units of a text are fetched without its length",
    "FC0620": "the type of an object is not compared",
    "FC0621": "a return probe can end the program",
    "FC0622": "the body of the function is another one's",
    "FC0623": "calls that let the stack grow lose the parameter",
    "FC0624": "compiler or linker made one of several functions",
    "FC0625": "perf shows another text in place of one that cannot be read",
    "FC0628": "the compiler may have made one of several functions",
    "FC0633": "the probe is set behind the prologue",
    "FC0634": "an assignment before the probed line may not show",
    "FC0701": "tracing is not permitted",
    "FC0702": "tracefs is not mounted",
    "FC0703": "the kernel has no uprobe events",
    "FC0704": "tracefs is locked or read-only",
    "FC0705": "the kernel refused a definition",
    "FC0706": "an event of that name exists already",
    "FC0707": "there is no such process",
    "FC0708": "the kernel refused an event filter",
    "FC0709": "the kernel refused a setting of the session",
    "FC0710": "a definition is in use and cannot be removed",
    "FC0711": "there is no such definition to remove",
    "FC0712": "the list of definitions cannot be used",
    "FC0713": "the kernel has other numbers for the processes",
    "FC0714": "the kernel has no probes of its own functions",
    "FC0715": "the perf map of a process cannot be made",
    "FC0716": "the kernel's records are not as they are known",
    "FC0751": "the filter does not parse",
    "FC0752": "the filter compares a value with what it cannot be",
    "FC0753": "the program cannot be run",
    "FC0755": "the number of functions is not one that can be traced",
    "FC0756": "a histogram of something that is not a number",
    "FC0801": "the compiler cannot be run",
    "FC0802": "the compiler builds no program",
    "FC0803": "a compiler or a program of the suite does not end",
    "FC0804": "the compiler writes no debug information",
    "FC0805": "a program of the suite does not run to its end",
    "FC0806": "programs cannot be traced here",
    "FC0807": "the suite cannot run here",
    "FC0901": "the file cannot be read",
    "FC0902": "the file is not an ELF file",
    "FC0903": "the file has no debug information",
    "FC0904": "the debug information is malformed",
    "FC0905": "the debug information uses something that fetchc does not read",
    "FC0906": "the image has no code that a probe can be set on",
    "FC0907": "an assembly that the image refers to is not found",
    "FC0908": "the debug file is of another build",
    "FC0909": "a file that the debug information is split over is not found",
}


# ------------------------------------------------------------------------------
# The long form of a diagnostic code: ``fetchc explain FC0302``.
#
# The texts are data beside this module, in ``explanations.txt``, so that they read like the pages
# they are. Not for the way of ``compile``.


def explain(code: str) -> str:
    """Title, meaning, example and cure of ``code``, one of :data:`fetchc.diag.codes.TITLES`.

    Several lines without a final newline, at most 100 columns wide. Raises ValueError
    for what is no code.
    """
    text = _texts().get(code)
    if text is None:
        raise ValueError(f"no diagnostic code {code!r}")
    return f"{code}: {TITLES[code]}\n\n{text}"


def _texts() -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    lines: list[str] = []  # of the comment at the top, until the first code
    content = get_data("fetchc.diag", "explanations.txt")  # of an installation that is a zip, too
    assert content is not None
    for line in content.decode("utf-8").split("\n"):
        if line.startswith("FC"):
            lines = texts[line] = []
        else:
            lines.append(line)
    return {code: "\n".join(text).strip("\n") for code, text in texts.items()}
