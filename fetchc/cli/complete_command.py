"""``fetchc complete``: how a command line goes on. The scripts of ``fetchc completion`` call it.

It answers from the table of options and the files that the command line names so far. What cannot
be read, or takes too long, has no candidates: no message belongs on the line that a user edits.
"""

from __future__ import annotations

import os

from fetchc.ceilings import Exceeded, watch, watched
from fetchc.cli.option_table import (
    COMMANDS,
    OPTIONS,
    Option,
    Options,
    UsageError,
    set_option,
    split_option,
)
from fetchc.diag.diagnostic import CompileError, Error
from fetchc.driver.expression_completion import Candidate, grouped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fetchc.api.library import Program
    from fetchc.api.probe import Probe
    from fetchc.cli.output import Output

__all__ = ["answer", "bash_answer", "run"]

_SHARES = 6  # a key may take a sixth of the time and the memory of a command
_LISTING = "63"  # COMP_TYPE of bash: `?`, candidates are shown and none is inserted
_FILES = ("BINARY", "FILE", "DIR", "IMAGE", "CC", "GO")
_EXPRESSIONS = ("EXPR", "EXPR|CODE", "EXPR[,EXPR]", "STEP,EXPR", "F")
_BY_READER = (
    "filter",
    "histogram",
    "linear",
    "sum",
    "by",
    "count_by",
)  # take what the reader of events has, too
_SPECIAL_IN_BASH = frozenset(" \t\"'\\$`&|;<>()*?[]{}!#~")


def run(options: Options, output: Output) -> int:
    """The first line says what to do with the others: files, word, more or menu."""
    shell, *words = options.operands
    try:
        if watched():
            watch(options.path, parts=_SHARES, incremental=True)
        if shell == "bash":
            lines = bash_answer(words[0] if words else "", words[1:], options)
        else:
            how, found = answer(words, options)
            lines = [how, *[f"{one.text}\t{one.help}" for one in found]]
    except (Error, UsageError, OSError, Exceeded, MemoryError):
        return 0
    output.document("\n".join(lines))
    return 0


# ------------------------------------------------------------------------------
# The words so far, and what the last one can be.


def answer(words: Sequence[str], asked: Options) -> tuple[str, list[Candidate]]:
    """What to do with the candidates for the last of ``words``, and the candidates.

    ``words`` follow ``fetchc``, without quotes. ``asked`` has the environment of the run. Raises
    Error, UsageError, OSError where something cannot be read.
    """
    *before, word = words or [""]
    found = _candidates(before, word, asked)
    if found is None:
        return "files", []
    # A name that would move the cursor or forge a line is none that can be typed.
    found = [one for one in found if one.text.isprintable() and one.help.isprintable()]
    if len(found) == 1:
        return ("more" if found[0].more else "word"), found
    return ("word" if all(one.text.startswith(word) for one in found) else "menu"), found


def _candidates(before: Sequence[str], word: str, asked: Options) -> list[Candidate] | None:
    # None: names of files.
    if not before:
        commands = {name: one.help for name, one in COMMANDS.items() if not one.hidden}
        others = {"help": "how a command is used", "--help": "help", "--version": "the version"}
        return _starting({**commands, **others}, word)
    name = before[0]
    if name == "help" and len(before) == 1:
        return _starting({name: one.help for name, one in COMMANDS.items() if not one.hidden}, word)
    if name not in COMMANDS:
        return []
    command = COMMANDS[name]
    options = Options(name)
    options.environment = asked.environment
    by_flag = {flag: OPTIONS[key] for key in command.options for flag in OPTIONS[key].flags}
    given, waiting = _read_leniently(before[1:], by_flag, options)
    if options.program:
        return None
    if waiting is not None:
        return _values(waiting, word, "", options)
    if word.startswith("--") and "=" in word:
        option, value = split_option(by_flag, word)
        return _values(option, value or "", word[: word.index("=") + 1], options)
    if word.startswith("-") and len(word) > 2 and not word.startswith("--"):
        option, value = split_option(by_flag, word)
        return _values(option, value or "", word[:2], options)
    if word.startswith("-"):
        free = {
            flag: option.help
            for flag, option in by_flag.items()
            if option.many or option.attribute not in given
        }
        return _starting({**free, "--help": "help"}, word)
    if command.most is not None and len(options.operands) >= command.most:
        return []
    return _meant(command.operand[1], name, word, "", options)


def _read_leniently(
    words: Sequence[str], by_flag: dict[str, Option], options: Options
) -> tuple[set[str], Option | None]:
    # The attributes that are set, and the option that waits for its value.
    given: set[str] = set()
    rest = iter(words)
    for word in rest:
        if word == "--":
            options.program += [*rest, ""] if COMMANDS[options.command].starts else []
            options.operands += rest
        elif not word.startswith("-") or word == "-":
            options.operands.append(word)
        else:
            try:
                option, value = split_option(by_flag, word)
                given.add(option.attribute)
                if option.metavar is None:
                    setattr(options, option.attribute, value or option.bare or True)
                    continue
                value = next(rest, None) if value is None else value
                if value is None:
                    return given, option
                set_option(options, option, value)
            except UsageError:
                continue  # who runs the command learns why
    return given, None


def _values(option: Option, word: str, head: str, options: Options) -> list[Candidate] | None:
    if "," in (option.metavar or "") and "," in word:
        end = word.rindex(",") + 1  # `--by a,b`, `--linear 10,EXPR`
        word, head = word[end:], head + word[:end]
    if option.choices:
        return _headed(_starting(dict.fromkeys(option.choices, ""), word), head)
    key = next((key for key, one in OPTIONS.items() if one is option), "")
    if key == "version":
        return []  # of a module, not of Linux
    if key in _BY_READER and word.startswith("$"):
        from fetchc.cli.trace_request import BUILTINS

        return _headed(_starting(dict.fromkeys(BUILTINS, "of every event"), word), head)
    return _meant(option.metavar or "", options.command, word, head, options)


def _meant(
    what: str, command: str, word: str, head: str, options: Options
) -> list[Candidate] | None:
    # By the name of an operand or of an option's value; None: names of files.
    if what in _FILES:
        return None
    found: list[Candidate] = []
    if what == "V":
        from fetchc.target.kernel_versions import dotted, turns

        versions = ["running", *map(dotted, turns())]
        found = _starting(dict.fromkeys(versions, "Linux"), word)
    elif what == "PID|NAME":
        from fetchc.cli.short_names import process_names

        running = {
            str(pid): os.fsencode(name).decode("utf-8", "replace")
            for pid, name in process_names().items()
        }
        named = {name: f"process {pid}" for pid, name in running.items() if not name.isdecimal()}
        found = _starting({**running, **named}, word)
    elif what == "NAME":
        from fetchc.tracer.persistent_probes import State, added_events, state_file

        added, _ = added_events(State(state_file()))
        names = {f"{one.group}/{one.event}": f"of {one.binary}" for one in added}
        names = {name: of for name, of in names.items() if name not in options.operands}
        found = _starting(names, word) or [
            Candidate(name, of, False) for name, of in names.items() if word in name
        ]
    elif what == "A":
        from fetchc.target.machines import tables_under

        machines = [name.removeprefix("arch/") for name in tables_under("arch")]
        found = _starting(dict.fromkeys(machines, "a machine"), word)
    elif what == "POINT":
        found = _starting({"body": "after the prologue"}, word)
    elif "|" in what and what.islower():
        found = _starting(dict.fromkeys(what.split("|"), ""), word)
    elif what == "EXPR|CODE" and word.startswith("FC"):
        from fetchc.diag.codes import TITLES

        found = _starting(TITLES, word)
    elif _binary(options) or options.processes:
        found = _of_binary(what, command, word, options)
    return _headed(found, head)


def _starting(names: dict[str, str], word: str) -> list[Candidate]:
    return [Candidate(name, help, False) for name, help in names.items() if name.startswith(word)]


def _headed(found: Iterable[Candidate], head: str) -> list[Candidate]:
    return [one.replaced(text=head + one.text) if head else one for one in found]


# ------------------------------------------------------------------------------
# What the file that is named describes.


def _binary(options: Options) -> str:
    return options.binary or next(iter(options.binaries), "")


def _of_binary(what: str, command: str, word: str, options: Options) -> list[Candidate]:
    options.binary = _binary(options)
    if "/" not in options.binary:
        from fetchc.cli.short_names import complete

        complete(options)  # the program of a process, a library
    path = options.binary
    if os.geteuid() == 0 and path.startswith("/proc/"):
        from fetchc.cli.output import Output
        from fetchc.cli.parsing_child import Reader, of_stranger

        if of_stranger(path):
            # What a stranger's process gives to read is read without the rights of root.
            def described() -> list[Candidate]:
                if watched():
                    watch(path, parts=_SHARES, incremental=True)
                return _described(what, command, word, options)

            with Reader({"complete": described}, path, Output("never"), options) as reader:
                found = reader.ask("complete")
            # Nor is it believed what it answers with.
            shown = [one for one in found if isinstance(one, Candidate)]
            return [Candidate(str(one.text), str(one.help), bool(one.more)) for one in shown]
    return _described(what, command, word, options)


def _described(what: str, command: str, word: str, options: Options) -> list[Candidate]:
    program = options.opened()
    if what == "FUNCTION" or (what == "GLOB" and command == "functions"):
        return _functions(program, word)
    if what in ("TYPE", "GLOB"):
        return _containing(sorted(program.types()), word, "a type")
    if what == "TYPE[.FIELD]":
        return _functions(program, word) if options.params else _fields(program, word)
    if what not in _EXPRESSIONS:
        return []
    if "@" in word and not word.rpartition("@")[2].strip().isdecimal():
        begin, _, point = word.rpartition("@")
        blanks = point[: len(point) - len(point.lstrip())]
        return _headed(_functions(program, point.lstrip()), f"{begin}@{blanks}")
    probe = _probe(program, options)
    return [] if probe is None else list(probe.completions(word))


def _probe(program: Program, options: Options) -> Probe | None:
    names = [options.function, *options.functions]
    name = next((one for one in names if one), None)
    kernel = None if options.kernel == "running" else options.kernel
    try:
        return program.probe(name, options.at, options.returns or options.latency, kernel)
    except CompileError:
        matching = [] if name is None else [one for one in program.functions(name) if one != name]
        if not matching:
            return None
        return program.probe(matching[0], options.at, options.returns, kernel)


def _functions(program: Program, word: str) -> list[Candidate]:
    return _containing(program.spelled(program.functions()), word, "")


def _containing(names: list[str], word: str, help: str) -> list[Candidate]:
    # Those that begin so; where none does, those that have it inside.
    starting = [name for name in names if name.startswith(word)]
    if starting or len(word) < 2:
        return grouped(starting, word, help)
    folded = word.lower()
    return [Candidate(name, help, False) for name in names if folded in name.lower()]


def _fields(program: Program, word: str) -> list[Candidate]:
    type_name, dot, _ = word.rpartition(".")
    found = _containing(sorted(program.types()), word, "a type")
    layouts = program.layouts(type_name) if dot and "*" not in type_name else []
    rows = [(row.name, row.type) for layout in layouts[:1] for row in layout.rows if row.name]
    fields = {f"{type_name}.{name}": shown for name, shown in rows}
    return [*_starting(fields, word), *found]


# ------------------------------------------------------------------------------
# Bash: the line as it was typed, and the part of it that bash replaces.


def bash_answer(line: str, further: Sequence[str], asked: Options) -> list[str]:
    """What to do, then the strings that bash is to put after the last character it breaks words at.

    ``line`` ends at the cursor. ``further`` are COMP_WORDBREAKS and COMP_TYPE. Bash breaks words
    there outside of quotes, so of ``name=r->Qu`` it replaces `Qu`, and of ``'r->Qu`` all that
    follows the quote. Source: _rl_find_completion_word of readline.
    """
    breaks = further[0] if further else ""
    listing = _LISTING in further[1:2]
    words, typed, quote, opened = _split(line)
    while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
        del words[0]  # VARIABLE=value fetchc ...
    word = "".join([character for character, _, _ in typed])
    start = (
        opened + 1
        if quote
        else 1
        + max(
            [at for character, at, quoted in typed if not quoted and character in breaks],
            default=-1,
        )
    )
    kept = sum(at < start for _, at, _ in typed)  # characters that bash leaves as they are
    how, found = answer([*words[1:], word], asked)
    texts = [_quoted(one.text[kept:], quote) for one in found]
    if listing and len(found) > 1:
        end = max(word.rfind("."), word.rfind(">"), word.rfind(":")) + 1
        same = all(one.text.startswith(word[:end]) for one in found)
        shown = [one.text[end:] if same else one.text for one in found]
        texts = [f"{name}  -- {one.help}" if one.help else name
                 for name, one in zip(shown, found, strict=True)]  # fmt: skip
    elif how == "menu":
        texts.append(" ")  # so that they have no beginning in common that would replace the word
    return [how, *texts]


_Typed = list[tuple[str, int, bool]]  # characters, where each is in the line, whether it is quoted


def _split(line: str) -> tuple[list[str], _Typed, str, int]:
    # Whole words without their quotes, the last one as typed, the quote open in it and its place.
    words: list[str] = []
    typed: _Typed | None = None
    quote, opened, at = "", 0, 0
    while at < len(line):
        character, following = line[at], line[at + 1 : at + 2]
        begun = [] if typed is None else typed
        if quote and character == quote:
            quote = ""
        elif character == "\\" and (following in '$`"\\' if quote == '"' else not quote):
            at += 1
            begun += [(following, at, True)] * bool(following)
        elif quote:
            begun.append((character, at, True))
        elif character in "'\"":
            quote, opened = character, at
        elif character.isspace():
            if typed is not None:
                words.append("".join([each for each, _, _ in typed]))
            typed = None
            at += 1
            continue
        else:
            begun.append((character, at, False))
        typed = begun
        at += 1
    return words, typed or [], quote, opened


def _quoted(text: str, quote: str) -> str:
    if quote == "'":
        return text.replace("'", "'\\''")
    special = '$`"\\' if quote else _SPECIAL_IN_BASH
    return "".join([f"\\{each}" if each in special else each for each in text])
