"""The reference pages that the site generates from the product: commands, diagnostics, kernels.

They are Markdown, as the pages in ``docs/``. Nothing of them is committed: the option table, the
explanations, the corpus' cases and ``targets/kernel/linux.toml`` are their sources.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fetchc.cli.help_text import EXAMPLES, grouped_options, option_help, synopsis
from fetchc.cli.option_table import COMMANDS, Option
from fetchc.diag.codes import TITLES, explain
from tests.support.cases import Case, all_cases

__all__ = ["FAMILIES", "SHOWN", "pages"]

CHECKOUT = Path(__file__).parents[2]

SHOWN = {name: command for name, command in COMMANDS.items() if not command.hidden}

# The first two digits of a code, as the docstring of fetchc/diag/codes.py describes them.
FAMILIES = {
    "01": "Syntax",
    "02": "Names",
    "03": "Types",
    "04": "Locations",
    "05": "The kernel's rules",
    "06": "Warnings: right, but it can surprise",
    "07": "Tracing",
    "08": "Toolchains, of `fetchc conformance`",
    "09": "Files",
}


def pages() -> dict[str, str]:
    """Every generated page: its path below the site's root, and its Markdown."""
    found = {"reference/commands.md": _commands(), "reference/diagnostics.md": _diagnostics()}
    found |= {f"reference/commands/{name}.md": _command(name) for name in SHOWN}
    shown = _messages(all_cases())
    found |= {
        f"reference/diagnostics/{code}.md": _diagnostic(code, shown.get(code, ()))
        for code in TITLES
    }
    rules = tomllib.loads((CHECKOUT / "targets/kernel/linux.toml").read_text())
    return found | {"reference/kernels.md": _kernels(rules)}


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def _front_matter(description: str, orphan: bool = False) -> str:
    # The description is what a search engine shows below the title. An orphan is in no menu:
    # that of each page would have all the diagnostics.
    text = description.replace("\\", "\\\\").replace('"', '\\"')
    menu = "orphan: true\n" if orphan else ""
    return f'---\n{menu}myst:\n  html_meta:\n    description: "{text}"\n---\n\n'


def _toctree(paths: Sequence[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", ":maxdepth: 1", "", *paths, "```"])


# ------------------------------------------------------------------------------
# Commands, from the option table.


def _commands() -> str:
    rows = [
        [f"[`fetchc {name}`](commands/{name}.md)", _plain(command.help)]
        for name, command in SHOWN.items()
    ]
    text = (
        "# Commands and options\n\n"
        "These pages are generated from the table that the command line reads. "
        "[The interface](../interface.md) describes exit statuses, JSON and the library.\n"
    )
    tree = _toctree([f"commands/{name}" for name in SHOWN])
    return f"{text}\n{_table(['command', 'what it does'], rows)}\n\n{tree}\n"


def _command(name: str) -> str:
    command = COMMANDS[name]
    parts = [
        _front_matter(f"fetchc {name}: {command.help}. Its options and their values."),
        f"# `fetchc {name}`: {_plain(command.help)}\n",
        f"```text\n{synopsis(name)}\n```\n",
        f"For example:\n\n```sh\n{EXAMPLES[name]}\n```\n",
    ]
    for title, example, options in grouped_options(name):
        parts.append(f"## {_plain(title)}\n")
        if example:
            parts.append(f"Such as {_code(example)}.\n")
        rows = [[_flags(option), _plain(option_help(option)[1])] for option in options]
        parts.append(_table(["option", "what it does"], rows) + "\n")
    return "\n".join(parts)


def _flags(option: Option) -> str:
    value = f" {option.metavar}" if option.metavar else ""
    return ", ".join(_code(flag + value) for flag in option.flags)


# ------------------------------------------------------------------------------
# Diagnostics, from their titles, explanations and the cases of the corpus.


def _diagnostics() -> str:
    parts = [
        "# Diagnostics\n\n"
        "Every message of fetchc has a code. `fetchc explain FC0302` prints the text of a code's "
        "page at the terminal.\n"
    ]
    for family, title in FAMILIES.items():
        rows = [
            [f"[{code}](diagnostics/{code}.md)", _plain(text)]
            for code, text in TITLES.items()
            if code[2:4] == family
        ]
        parts.append(f"## {title}\n\n{_table(['code', 'what it says'], rows)}\n")
    return "\n".join(parts) + "\n"


def _messages(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Of each code the two shortest cases that show this code alone."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        codes = set(re.findall(r"^(?:error|warning)\[(FC\d{4})\]", case.error, re.MULTILINE))
        if len(codes) == 1:
            found.setdefault(codes.pop(), []).append(case)
    return {
        code: sorted(each, key=lambda case: (len(case.expressions), len(case.error)))[:2]
        for code, each in found.items()
    }


def _diagnostic(code: str, cases: Sequence[Case]) -> str:
    kind = "warning" if code.startswith("FC06") else "error"
    _, _, text = explain(code).partition("\n\n")
    parts = [
        _front_matter(f"fetchc {kind}[{code}]: {TITLES[code]}. What it means, what to do.", True),
        f"# {code}: {_plain(TITLES[code])}\n",
        "\n".join(_markdown(text)),
    ]
    if cases:
        parts.append("\n## What fetchc prints\n")
        for case in cases:
            parts += [f"{_plain(case.name[:1].upper() + case.name[1:])}:\n"]
            parts += [f"```text\n{_shown(case)}\n```\n"]
    parts.append("[All diagnostics](../diagnostics.md)\n")
    return "\n".join(parts)


def _shown(case: Case) -> str:
    words = [
        "fetchc compile",
        *(_quoted(text) for text in case.expressions),
        f"-x corpus/{case.binary}",
    ]
    words += [f"-f {_quoted(case.function)}"] if case.function else []
    words += [f"--at {_quoted(case.at)}"] if case.at else []
    words += ["--return"] if case.returns else []
    words += [f"--kernel {case.kernel}"]
    words += [f"--format {case.format}"] if case.format else []
    error = case.error.replace("CORPUS/", "corpus/").rstrip("\n")
    return "\n".join(["$ " + " ".join(words), error])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _markdown(text: str) -> Iterator[str]:
    """An explanation as Markdown: its indented examples are fenced, its prose is escaped."""
    for block in re.split(r"\n\n(?=\S)|(?<=\S)\n\n(?=    )", text):
        if block.startswith("    "):
            lines = [line.removeprefix("    ") for line in block.split("\n")]
            yield "\n".join(["```text", *lines, "```", ""])
        elif block == "Example:":
            yield "## Example\n"
        elif block.startswith("What to do: "):
            prose = block.removeprefix("What to do: ")
            yield f"## What to do\n\n{_plain(prose[:1].upper() + prose[1:])}\n"
        else:
            yield f"{_plain(block)}\n"


def _plain(text: str) -> str:
    """``text`` where Markdown means nothing by its characters, except that of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*_<>\[\]])", r"\\\1", part) for part in parts
    )


# ------------------------------------------------------------------------------
# Kernels, from the rules that `check` and `compile` apply.

_WORDS = {
    "body_bytes": "bytes of one argument, without its name",
    "instructions": "steps of one fetch",
    "nesting": "dereferences of one fetch",
    "argument_name_bytes": "bytes of an argument's name",
    "event_name_bytes": "bytes of the name of an event or group",
    "arguments": "arguments of an event",
    "array_elements": "elements of an array",
    "event_bytes": "bytes of an event's fixed part",
    "record_bytes": "bytes of a record",
    "line_bytes": "bytes of a definition",
    "text_bytes": "bytes of a string",
    "offset_bits": "bits of an offset",
    "stack_words": "words of the stack",
    "returns_at_once": "calls that a return probe follows at once",
}


def _kernels(rules: Mapping[str, Mapping[str, Mapping[str, object]]]) -> str:
    limits = []
    for name, limit in rules["limits"].items():
        steps = limit["steps"]
        assert isinstance(steps, list)
        shown = "; ".join(f"{value:,} since {first}" for first, value in steps)
        limits.append(
            [_WORDS.get(name, name.replace("_", " ")), shown, _plain(str(limit["source"]))]
        )
    parts = [
        _front_matter(
            "Which Linux version accepts what in uprobe_events and kprobe_events: limits, bases, "
            "types, each with its source."
        ),
        "# What each kernel accepts\n",
        "These are the rules that `fetchc check` and `fetchc compile --kernel V` apply, from "
        "`targets/kernel/linux.toml`. A version is the first mainline release that has the rule. "
        "Measured means: tried on a running kernel of that version.\n",
        "## Limits\n",
        _table(["what", "at most", "source"], limits),
        "\n## Where a value comes from\n",
        _table(["written", "kinds of probes", "since", "source"], _written(rules["bases"])),
        "\n## How a value is stored\n",
        _table(["written", "kinds of probes", "since", "source"], _written(rules["stores"])),
        "\n## Definitions\n",
        _table(
            ["what", "since", "source"],
            [
                [name.replace("_", " "), str(rule["first"]), _plain(str(rule["source"]))]
                for name, rule in rules["features"].items()
            ],
        ),
    ]
    return "\n".join(parts) + "\n"


def _written(rules: Mapping[str, Mapping[str, object]]) -> list[list[str]]:
    rows = []
    for rule in rules.values():
        kinds, firsts = rule["kinds"], rule.get("firsts", {})
        assert isinstance(kinds, list)
        assert isinstance(firsts, dict)
        since = [str(rule["first"]), *(f"{kind} {first}" for kind, first in firsts.items())]
        if "until" in rule:
            since.append(f"of programs until {rule['until']}")
        row = [", ".join(kinds), "; ".join(since), _plain(str(rule["source"]))]
        rows.append([_code(str(rule["written"])), *row])
    return rows
