"""``fetchc explain CODE``: a diagnostic code in long form."""

from __future__ import annotations

from fetchc.diag.codes import TITLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.cli.options import Options
    from fetchc.cli.output import Output

__all__ = ["run"]


def run(options: Options, output: Output) -> int:
    """Print the long text of a code."""
    code = options.operands[0].upper()
    if code not in TITLES:
        output.say(f"error: there is no diagnostic code `{code}`")
        output.say("codes look like FC0302; a diagnostic prints its own in brackets")
        return 2
    from fetchc.diag.explain import explain

    output.line(explain(code).rstrip("\n"))
    return 0
