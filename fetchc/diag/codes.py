"""Every diagnostic code with its title. Numbers are never reused.

The first two digits name the family: 01 syntax, 02 names, 03 types, 04 locations,
05 the kernel's rules, 06 warnings (right, but it can surprise), 07 tracing,
08 toolchains (of `fetchc conformance`), 09 files.

To add one: a title here, an explanation in ``explanations.txt``, the place that
raises it, a case under ``corpus/diagnostics/``. Tests compare the four.
"""

from __future__ import annotations

__all__ = ["TITLES", "explain"]

TITLES = {
    "FC0101": "the expression does not parse",
    "FC0102": "the expression is too long or nested too deeply",
    "FC0103": "not supported as a part of an expression",
    "FC0104": "the expression is empty",
    "FC0105": "a line of a batch is not a valid request",
    "FC0201": "no variable of that name is visible at the probe point",
    "FC0202": "no function of that name has code in the file",
    "FC0203": "several functions have that name",
    "FC0204": "no type of that name is defined in the file",
    "FC0205": "the architecture has no register of that name",
    "FC0206": "the probe point does not exist or cannot be probed",
    "FC0207": "the kernel does not accept the argument name",
    "FC0208": "a name is ambiguous",
    "FC0301": "member access on something that is not a structure",
    "FC0302": "the structure has no member of that name",
    "FC0303": "an index is outside its array",
    "FC0304": "indexing something that is not an array, slice or pointer",
    "FC0305": "dereferencing something that is not a pointer",
    "FC0306": "a cast that would change the value",
    "FC0307": "the format does not fit the type",
    "FC0308": "a fetch-arg cannot do this arithmetic",
    "FC0309": "len or cap of a type that has none",
    "FC0310": "the value is a function",
    "FC0311": "the type is only declared, or has no size",
    "FC0312": "the value does not fit into one fetch-arg",
    "FC0313": "a type assertion that always fails",
    "FC0314": "only an eBPF program can find the elements",
    "FC0401": "the variable has no location at the probe point",
    "FC0402": "the value is in a vector register",
    "FC0403": "the variable is thread-local",
    "FC0404": "the value is in several pieces",
    "FC0405": "a fetch-arg cannot return an address",
    "FC0406": "the value is computed and not in memory",
    "FC0407": "the debug information and the calling convention disagree",
    "FC0408": "a pointer narrower than a machine word cannot be dereferenced",
    "FC0409": "the function's return cannot be probed",
    "FC0410": "the result exists only when the function returns",
    "FC0501": "the fetch-arg is longer than the kernel accepts",
    "FC0502": "the fetch-arg has more dereferences than the kernel accepts",
    "FC0503": "the kernel does not accept the group or event name",
    "FC0504": "more arguments than the kernel accepts in one event",
    "FC0505": "the kernel does not accept the array count",
    "FC0506": "the kernel is too old for this",
    "FC0507": "the kernel does not read this type from here",
    "FC0508": "the event is bigger than the kernel accepts",
    "FC0509": "the definition is longer than the kernel accepts",
    "FC0510": "the path cannot be written in a definition",
    "FC0511": "the kernel silently truncates the offset",
    "FC0512": "the kernel has no name for the register",
    "FC0513": "the kernel cannot read the bit field",
    "FC0514": "the output format cannot express this",
    "FC0515": "an instruction that cannot be probed",
    "FC0516": "a probe here would break the program",
    "FC0601": "a string with a length has no NUL at its end",
    "FC0602": "two sources disagree on the location",
    "FC0603": "the probe misses inlined calls",
    "FC0604": "a character array may have no NUL at its end",
    "FC0605": "members of a whole structure are left out",
    "FC0606": "fetchc cannot verify the probe point",
    "FC0607": "an executable may have its own copy of the variable",
    "FC0608": "the kernel prints a signed bit field unsigned",
    "FC0609": "some calls end without a probed return instruction",
    "FC0610": "the tool may refuse to probe at this address",
    "FC0611": "perf prints signed numbers of one and two bytes unsigned",
    "FC0612": "a killed session left its definitions in the kernel",
    "FC0613": "the traced file was replaced or deleted",
    "FC0614": "the dynamic type of an interface is not checked",
    "FC0615": "the method has a pointer receiver",
    "FC0616": "a source line starts at several addresses",
    "FC0617": "copies of an inlined function may be missing",
    "FC0618": "the runtime replaces the code after some calls",
    "FC0619": "a string is fetched without its length",
    "FC0620": "the type of an object is not checked",
    "FC0621": "a return probe can end the program",
    "FC0622": "the function's body is in another function",
    "FC0623": "calls that grow the stack lose the parameter",
    "FC0624": "compiler or linker folded identical functions",
    "FC0625": "perf shows another string instead of an unreadable one",
    "FC0628": "the compiler may have folded identical functions",
    "FC0633": "the probe is set after the prologue",
    "FC0634": "an assignment before the probed line may not show",
    "FC0635": "the kernel is newer than the tables",
    "FC0636": "a debugger is at a process that runs traced code",
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
    "FC0712": "the file of installed definitions cannot be used",
    "FC0713": "process IDs differ from the kernel's",
    "FC0714": "the kernel has no kprobe events",
    "FC0715": "the perf map of a process cannot be written",
    "FC0716": "the layout of the kernel's event records is not supported",
    "FC0717": "the kernel refused an eBPF program",
    "FC0718": "eBPF cannot be used",
    "FC0719": "the file was replaced before its probes were set",
    "FC0720": "no breakpoint can be set",
    "FC0721": "a runtime does not say where its compiled code is",
    "FC0722": "the variable cannot be watched",
    "FC0751": "the filter does not parse",
    "FC0752": "the filter compares values of different kinds",
    "FC0753": "the program cannot be run",
    "FC0755": "no function to trace, or too many",
    "FC0756": "a histogram needs a number",
    "FC0757": "a short name means no file or process, or several",
    "FC0801": "the compiler cannot be run",
    "FC0802": "the compiler does not build a program",
    "FC0803": "a compiler or a test program does not end",
    "FC0804": "the compiler writes no debug information",
    "FC0805": "a test program does not run to its end",
    "FC0806": "programs cannot be traced here",
    "FC0807": "the suite cannot run here",
    "FC0901": "the file cannot be read",
    "FC0902": "the file is not an ELF file",
    "FC0903": "the file has no debug information",
    "FC0904": "the debug information is malformed",
    "FC0905": "the debug information or the machine is not supported",
    "FC0906": "the image has no code that can be probed",
    "FC0907": "a referenced assembly is not found",
    "FC0908": "the debug file is of another build",
    "FC0909": "a file with a part of the debug information is not found",
}


# ------------------------------------------------------------------------------
# Explanations: ``fetchc explain FC0302``. A compile does not read them.


def explain(code: str) -> str:
    """Title, cause, example and remedy of ``code``, one of :data:`TITLES`.

    Several lines without a final newline, at most 100 columns wide. Raises ValueError
    for an unknown code.
    """
    text = _texts().get(code)
    if text is None:
        raise ValueError(f"no diagnostic code {code!r}")
    return f"{code}: {TITLES[code]}\n\n{text}"


def _texts() -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    lines: list[str] = []  # the comment at the top, until the first code
    from pkgutil import get_data

    content = get_data("fetchc.diag", "explanations.txt")  # works for an installation in a zip, too
    assert content is not None
    for line in content.decode("utf-8").split("\n"):
        if line.startswith("FC"):
            lines = texts[line] = []
        else:
            lines.append(line)
    return {code: "\n".join(text).strip("\n") for code, text in texts.items()}
