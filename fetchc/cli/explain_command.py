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
    kind = f", of type `{output.types(explained.type)}`," if explained.type else ""
    output.line(f"{explained.text}{kind} at {_where(explained)}")
    for fetch_steps in explained.fetches:
        output.line("")
        _print(output, fetch_steps)
    return 0


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
