"""``fetchc check``: hand-written definitions, checked against a kernel's rules."""

from __future__ import annotations

from fetchc.cli.output import given_lines
from fetchc.driver.check_definitions import check_definition
from fetchc.target.kernel_versions import beyond_tables, kernel, running_version
from fetchc.target.machines import architecture_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.driver.check_definitions import Checked

__all__ = ["run"]


def run(options: Options, output: Output) -> int:
    """One line a definition: the verdict, and the kernels that accept it; problems beside it."""
    texts = [*options.operands, *options.expr]
    if not texts:
        output.say("error: no definition is given", "", "usage: fetchc check DEFINITION...")
        return 2
    rules = kernel(running_version() if options.kernel == "running" else options.kernel)
    machine = "x86_64" if options.arch is None else architecture_key(options.arch)
    output.diagnostics(beyond_tables(rules), "")
    checked = [check_definition(text, rules, machine) for text in _definitions(texts)]
    if options.format == "json":
        import json

        from fetchc.answers.json_documents import verdicts

        output.document(json.dumps(verdicts(checked, rules.name), indent=2))
    for each in checked:
        if options.format != "json":
            output.diagnostics(each.problems + each.warnings, each.text)
            output.line(_verdict(each, rules.name))
    return int(any(each.problems for each in checked))


def _definitions(texts: list[str]) -> Iterator[str]:
    # ``-`` means the lines of standard input; some may say nothing.
    for text in texts:
        if text != "-":
            yield text
            continue
        for line in map(str.strip, given_lines()):
            if not line.startswith("#"):
                yield line


def _verdict(checked: Checked, version: str) -> str:
    verdict = f"{'refused' if checked.problems else 'ok'} for {version}"
    spans = [f"from {first}" + (f" to {last}" if last else "") for first, last in checked.ranges]
    accepted = "accepted " + " and ".join(spans) if spans else "accepted by no version"
    returns = " in return probes" if checked.kind == "uretprobe" and spans else ""
    return f"{verdict}, {accepted}{returns}"
