"""``fetchc explain``: an expression or a fetch-arg hop by hop, a diagnostic code in long form."""

from __future__ import annotations

import re

from fetchc.cli.output import exit_status
from fetchc.diag.codes import TITLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.driver.explain_fetch import Explained, ExplainedFetch

__all__ = ["run"]


def run(options: Options, output: Output) -> int:
    """Print the long text of a code, or the hops of what is to be fetched."""
    texts = [*options.operands, *options.expr]
    if len(texts) != 1:
        output.say("error: explain one expression or code at a time")
        output.say("", "usage: fetchc explain EXPR -x BINARY -f FUNCTION, or fetchc explain CODE")
        return 2
    (text,) = texts
    if re.fullmatch(r"[Ff][Cc][0-9]+", text):
        return _code(text.upper(), options, output)
    if not options.binary:
        output.say(f"error: -x BINARY is missing: name the program that `{text}` is about")
        output.say("diagnostic codes look like FC0302; a diagnostic prints its own in brackets")
        return 2
    return _fetch(text, options, output)


def _code(code: str, options: Options, output: Output) -> int:
    if code not in TITLES:
        output.say(f"error: there is no diagnostic code `{code}`")
        output.say("codes look like FC0302; a diagnostic prints its own in brackets")
        return 2
    from fetchc.diag.codes import explain

    text = explain(code).rstrip("\n")
    if options.format == "svg":
        output.say("error: a diagnostic code has no picture; --format svg draws an expression")
        return 2
    if options.format == "json":
        import json

        output.document(json.dumps({"code": code, "title": TITLES[code], "text": text}, indent=2))
    else:
        output.document(text)
    return 0


def _fetch(text: str, options: Options, output: Output) -> int:
    from fetchc.diag.diagnostic import CompileError
    from fetchc.target.kernel_versions import running_version

    kernel = running_version() if options.kernel == "running" else options.kernel
    program = options.opened()
    try:
        if options.function is None and options.at is None:
            probe, _ = program.point(text, options.returns, kernel)
        else:
            probe = program.probe(options.function, options.at, options.returns, kernel)
        explained = probe.explain(text)
    except CompileError as refusal:
        output.diagnostics(refusal.diagnostics, refusal.text or text)
        return exit_status(refusal.diagnostics)
    output.diagnostics(explained.found.warnings, "")
    output.diagnostics(explained.warnings, text)
    if options.format == "json":
        import json

        from fetchc.answers.json_documents import explanation

        output.document(json.dumps(explanation(program, kernel, explained), indent=2))
        return 0
    if options.format == "svg":
        output.document(_picture(explained, output))
        return 0
    output.line(_headline(explained, output))
    for fetch_steps in explained.fetches:
        output.line("")
        _print(output, fetch_steps)
    return 0


def _headline(explained: Explained, output: Output) -> str:
    kind = f", of type `{output.types(explained.type)}`," if explained.type else ""
    return f"{explained.text}{kind} at {_where(explained)}"


def _where(explained: Explained) -> str:
    site = explained.found.site
    kinds = {"entry": "the entry of", "return": "the return of", "return-site": "a return of"}
    if site.function is None:
        return f"{site.address:#x}"
    where = kinds.get(explained.found.kind, "an instruction of")
    address = "" if site.program.in_kernel else f", {site.address:#x}"
    return f"{where} {site.function.name}{address}"


def _print(output: Output, fetch_steps: ExplainedFetch) -> None:
    rows = [
        (hop.fetcharg, hop.kernel, hop.expression or "?", output.types(hop.type or ""))
        for hop in fetch_steps.hops
    ]
    if fetch_steps.name:
        output.line(f"{fetch_steps.name}:")
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        output.line("  ".join(["", *cells, row[3]]).rstrip())
    if fetch_steps.unknown is not None:
        output.line(f"  the rest is not known: {fetch_steps.unknown}")
    output.line(f"  the event holds {fetch_steps.result}")


# ------------------------------------------------------------------------------
# The same as a picture: a box a hop, an arrow for what the kernel does between two of them.

_MARGIN = 16
_GAP = 34  # px between two boxes, with the arrow and its label


def _picture(explained: Explained, output: Output) -> str:
    from fetchc.cli.svg import LINE, PAGE, columns, document, label

    kind = f"  {output.types(explained.type)}" if explained.type else ""
    texts = [f"{explained.text}{kind}", f"at {_where(explained)}"]
    parts = [label(_MARGIN, _MARGIN + 12, texts[0]), label(_MARGIN, _MARGIN + 30, texts[1], "dim")]
    y, right = _MARGIN + 30.0, 0.0
    for fetch_steps in explained.fetches:
        if fetch_steps.name:
            y += LINE + 6
            parts.append(label(_MARGIN, y, f"{fetch_steps.name}:"))
            texts.append(f"{fetch_steps.name}:")
        y += 14
        drawn, y, width = _chain(fetch_steps, y, output)
        parts += drawn
        right = max(right, width)
        for line in _ends(fetch_steps):
            y += LINE
            parts.append(label(_MARGIN, y + 4, line, "dim"))
            texts.append(line)
        y += 4
    right = max([right, *(_MARGIN + columns(text) for text in texts)])
    said = "; ".join(
        f"{hop.fetcharg}: {hop.kernel}, {hop.expression or '?'}"
        for fetch_steps in explained.fetches
        for hop in fetch_steps.hops
    )
    return document(
        _headline(explained, output), said, (right + _MARGIN, y + _MARGIN), [PAGE, *parts]
    )


def _ends(fetch_steps: ExplainedFetch) -> list[str]:
    unknown = fetch_steps.unknown
    missing = [] if unknown is None else [f"the rest is not known: {unknown}"]
    return [*missing, f"the event holds {fetch_steps.result}"]


def _chain(fetch_steps: ExplainedFetch, y: float, output: Output) -> tuple[list[str], float, float]:
    """What is drawn of a fetch from ``y`` down, where it ends, and its right edge."""
    from fetchc.cli.svg import Box, arrow, columns, label

    parts, right = [], 0.0
    for position, hop in enumerate(fetch_steps.hops):
        known = f"{hop.expression or '?'}  {output.types(hop.type or '')}".rstrip()
        if position:
            step = hop.kernel
            parts.append(arrow(_MARGIN + 22, y, y + _GAP))
            parts.append(label(_MARGIN + 34, y + _GAP / 2 + 5, step, "dim"))
            right = max(right, _MARGIN + 34 + columns(step))
            y += _GAP
        last = position + 1 == len(fetch_steps.hops)
        first = () if position else (hop.kernel,)
        box = Box(_MARGIN, y, (known, hop.fetcharg, *first), "end" if last else "box")
        parts.append(box.drawn())
        y += box.height
        right = max(right, box.x + box.width)
    return parts, y, right
