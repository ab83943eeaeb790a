"""Our verdict on a definition against a kernel's: verdict, reason and place.

What a kernel refuses must be refused here, for its reason and at the column of its caret;
what it accepts must be accepted. The exceptions are ``STRICTER``.
"""

from __future__ import annotations

import errno
import re

from fetchc.conformance import machine
from fetchc.diag.diagnostic import Diagnostic
from fetchc.driver.check_definitions import Checked
from fetchc.source import Span
from tests.support.verdicts import Verdict

# Where we refuse what the kernel accepts: the reason, our code and how our message begins.
STRICTER = [
    ("text behind the bracket that closes is dropped", "FC0101", "the kernel ignores `"),
    (
        "what begins with $retval is that, a bracket too many as well",
        "FC0101",
        "`)` has no opening bracket",
    ),
    ("the line is cut at #", "FC0101", "the kernel ignores the line"),
    ("digits behind the letter take the event its name", "FC0101", "a uprobe takes no number"),
    ("an offset is kept in 32 bits, a stack index likewise", "FC0511", ""),
    ("an immediate string always faults", "FC0507", "an immediate string prints"),
    ("an immediate as string is an address that nobody wrote", "FC0507", r"`\N` cannot be fetched"),
    ("the file has no code there: nothing looks before it is enabled", "FC0206", "no code of"),
]

# The same of some kinds of kernel probes.
_LATE = ("fprobe", "fexit", "tprobe")
STRICTER_OF_KINDS = [
    (("eprobe",), "where a text is, is stored as a number", "an immediate string has no"),
    (("eprobe",), "where the task's name is, is stored as a number", "`$comm` cannot be fetched"),
    (("eprobe",), "the task's name is taken for an address", "`$comm` is a string"),
    (_LATE, "symbols are looked up when it is enabled, from 7.3 on", "the symbol is missing"),
    (_LATE, "their offsets are read then as well", "the symbol's offset"),
    (("kprobe", "kretprobe", *_LATE), "a type of `$arg*` is dropped", "`$arg*` is written alone"),
]

# Where only some kernels accept: what a later release of a series has and mainline's first of it
# had not (a definition is for any release of its version), and what old ones pass over. The
# reason, and how our message begins.
OF_SOME = [
    ("$COMM came to stable 5.10 by 5.10.262", "Linux 5.10 does not know `$COMM`"),
    ("symstr came to stable 6.1 by 6.1.192", "Linux 6.1 does not know `symstr`"),
    ("before 6.8 arguments beyond 128 are dropped without a word", "129 arguments are too many"),
]

# What a kernel says of its own symbols, types and events, which nobody else knows.
KERNEL_ONLY = {
    "Invalid probed address or symbol",
    "Failed to register probe event",
    "The symbol is not unique",
    "This variable is not found at this probe point",
    "No BTF entry for this probe point",
    "BTF is not available or not supported",
    "This type does not fit for string.",
    "This field is not found.",
    "This is not a pointer to union/structure.",
    "This function returns 'void' type",
    "Tracepoint is not found",
    "Attached event does not exist",
    "Attached event does not have this field",
    "This event field is not found.",
    "Probe point is not an instruction boundary",
}
FIELDS = {"Invalid $-variable specified"}  # of an event
NESTED_LEVELS = "Too many nested typecasts/dereferences"

# The kernel's words for each of our codes.
_NAMES = "must follow the same rules as C identifiers"
WORDS = {
    "FC0101": {
        "Dereference needs a brace",
        "Invalid dereference offset",
        "Dereference brace is not closed",
        "Invalid fetch argument",
        "Invalid memory address",
        "Invalid file offset value",
        "Invalid immediate value",
        "String is not closed with '\"'",
        "Array is not closed",
        "Array has wrong suffix",
        "Failed to parse single hyphen. Forgot '>'?",
        "BTF is not available or not supported",
        "Maxactive is only for function exit",
        "Maxactive is not for kprobe",
        "Invalid maxactive number",
        "No filter rule after 'if'",
    },
    "FC0103": {
        "Invalid fetch argument",
        "BTF is not available or not supported",
        "Invalid $-variable specified",
    },
    "FC0104": {"No argument expression"},
    "FC0201": {
        "BTF is not available or not supported",
        "Invalid $-variable specified",
        "Invalid fetch argument",  # before BTF names
        "This variable is not found at this probe point",
        "Failed to parse single hyphen. Forgot '>'?",
        "No BTF entry for this probe point",
        "$arg* can be used only on function entry or exit",
    },
    "FC0206": {
        "Invalid probed address or symbol",
        "Retprobe address must be an function entry",
        "Failed to register probe event",
        "Invalid character in tracepoint name",
        "This requires both group and event name to attach",
        "Invalid uprobe offset",
        "Reference counter brace is not closed",
        "Reference counter has wrong suffix",
        "Invalid reference counter offset",
        "Invalid probed address suffix",
        "Not a regular file",
    },
    "FC0207": {
        "Argument name is too long",
        "Argument name is not specified",
        f"Argument name {_NAMES}",
        "This argument name is already used",
    },
    "FC0301": {
        "Invalid fetch argument",  # before BTF names
        "Non pointer structure/union argument is not supported.",
    },
    "FC0501": {machine.TOO_LONG},
    "FC0502": {machine.NESTED, machine.TOO_LONG, NESTED_LEVELS},
    "FC0503": {
        "Event name is not specified",
        "Group name is not specified",
        "Event name is too long",
        "Group name is too long",
        f"Event name {_NAMES}",
        f"Group name {_NAMES}",
    },
    "FC0504": {"Too many arguments are specified", "Maxactive is too big"},
    "FC0505": {"Invalid array size", "Array number is too big"},
    "FC0507": {
        machine.NOT_MEMORY,
        machine.BAD_TYPE,
        machine.BAD_BITFIELD,
        "$retval is not available on probe",
        "$comm and immediate-string only accepts string type",
        "$comm can not be dereferenced",
        "$arg* can be used only on function entry or exit",
        "Invalid argument number",
        "Invalid $-variable specified",
        "Symbol is not available with uprobe",
        "Symbol String doesn't accept data/userdata",
        "Invalid stack number",
        "File offset is not available with kprobe",
        "File offset is not available for kernel probes",
        "Invalid fetch argument",  # a register where there are none, before 7.3
        "$arg* must be an independent parameter without name etc.",
        "$arg* can be used only once in the parameters",
        "BTF is not available or not supported",
    },
    "FC0506": {
        machine.BAD_TYPE,
        "Invalid $-variable specified",
        "Invalid fetch argument",
        "BTF is not available or not supported",
        "$arg* can be used only on function entry or exit",
        "Invalid maxactive number",
        "Event name is not specified",
        "",
    },
    "FC0508": {"Event too big (too many fields?)"},
    "FC0511": {
        "Invalid dereference offset",
        "Invalid memory address",
        "Invalid file offset value",
        "Invalid immediate value",
        "Invalid $-variable specified",
    },
    "FC0512": {"Invalid register name"},
}


def compare(line: str, checked: Checked, verdict: Verdict) -> str:
    """How our verdict on a line differs from the kernel's; nothing where it does not."""
    problems = checked.problems
    listed = [(p.code, p.primary.span.start if p.primary else None, p.message) for p in problems]
    said = f"{line}: the kernel says {verdict}, we say {listed}"
    if not verdict.errno:
        return said if any(not stricter(problem, checked.kind) for problem in problems) else ""
    only = KERNEL_ONLY | (FIELDS if checked.kind == "eprobe" else set())
    if checked.kind not in ("uprobe", "uretprobe") and verdict.text in only:
        return "" if problems or checked.warnings else said
    # Without a word: a symbol that it does not have, a kind of probe that it is not built with.
    silent = {"eprobe": errno.ENOENT, **dict.fromkeys(_LATE, errno.EINVAL)}
    if verdict.errno == silent.get(checked.kind) and not verdict.text:
        return "" if problems or checked.warnings else said
    if not problems:
        return said
    if not verdict.text or unbalanced(line):
        return ""
    for problem in problems:
        place = problem.primary
        if place is None or verdict.text not in WORDS.get(problem.code, ()):
            continue
        if verdict.caret in carets(line, place.span, verdict.text):
            return ""
    return said


def stricter(problem: Diagnostic, kind: str = "uprobe") -> bool:
    """Whether the problem is one that the kernel does not have, for a reason."""
    if any(problem.message.startswith(start) for _, start in OF_SOME):
        return True
    for kinds, _, start in STRICTER_OF_KINDS:
        if kind in kinds and problem.message.startswith(start):
            return True
    return any(
        problem.code == code and problem.message.startswith(start) for _, code, start in STRICTER
    )


def unbalanced(line: str) -> bool:
    """Whether brackets are other than those of one chain: the kernel ends it at the last one.

    So it complains of what is before that, a register `%di)`, and not of the bracket.
    """
    if "((" in line:
        return True
    depth, ended = 0, False
    for character in line:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0 or (ended and character == "("):
            return True
        ended = ended or (character == ")" and depth == 0)
        if character in " :=":
            depth, ended = 0, False
    return False


EARLY = {
    machine.BAD_TYPE,
    "Array is not closed",
    "Array has wrong suffix",
    "Invalid array size",
    "Array number is too big",
    "$comm and immediate-string only accepts string type",
}
LATE = {machine.BAD_BITFIELD, machine.NOT_MEMORY, "Event too big (too many fields?)"}


def carets(line: str, place: Span, reason: str) -> set[int]:
    """Columns of the kernel's caret that mean our ``place``; the slips are those of 6.18.

    * It forgets to count the `u` of `+u8(`, and the plus of `+-8(`.
    * The last error is reported after the outermost `+8(`: too far right by that.
    * Too many loads are reported after the outermost `+8(`, which is not where one is too many.
    """
    start = line.rfind(" ", 0, place.start) + 1
    equals = line.find("=", start)
    if 0 <= equals < place.start:
        start = equals + 1
    levels = loads(line[start:])
    lost = [sum(levels[:count]) for count in range(len(levels) + 1)]
    first = re.match(_LOAD, line[start:])
    moved = 0 if first is None else len(first[0]) - levels[0]
    if re.match(r"\$arg\d", line[start:]):  # the kernel puts the argument's own name there
        return set(range(start, start + len(line)))
    if reason == "Event name is not specified":
        return {place.start, place.end + 1}  # reported at the group, or after it
    if reason == "Non pointer structure/union argument is not supported.":
        return {place.start}
    if reason == "No filter rule after 'if'":
        return {place.start + 1}
    if reason == machine.NESTED:
        return {start + moved}
    if reason == NESTED_LEVELS:
        before = re.match(f"({_LOAD}){{{_LEVELS}}}", line[start:])
        return {start + before.end() - sum(levels[:_LEVELS])} if before else set()
    if reason in EARLY:
        return {place.start}
    if reason in LATE:
        return {place.start, place.start + moved}
    if reason == "Dereference brace is not closed":
        return {place.start - each for each in lost}  # which level tells it, the tree does not say
    before = re.match(f"({_LOAD})*", line[start : place.start])
    opened = before[0] if before else ""
    found = {place.start - sum(loads(opened))}
    if reason in ("Invalid fetch argument", "BTF is not available or not supported"):
        found.add(start + len(opened) - sum(loads(opened)))  # not read any further
    return found


_LEVELS = 8
_LOAD = r"[+-](?:u?-?)[^():\s]*\("


def loads(text: str) -> list[int]:
    """Of each load that the text begins with, the characters that the kernel does not count."""
    found = []
    while level := re.match(r"([+-])(u?)(-?)[^():\s]*\(", text):
        sign, user, minus = level.groups()
        found.append(len(user) + (sign == "+" and bool(minus)))
        text = text[level.end() :]
    return found
