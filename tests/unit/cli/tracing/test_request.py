"""What options of ``trace`` go together, and what is wanted beside the values shown."""

from __future__ import annotations

import pytest

from fetchc.cli import main, parse
from fetchc.cli.option_table import Options
from fetchc.cli.trace_request import Refused, Request, Usage, request
from fetchc.tracer.filter_conditions import comparisons


def asked(*words: str) -> Request:
    options = parse(("trace", "-x", "b", *words))
    assert isinstance(options, Options)
    return request(options)


def test_expressions_of_filters_and_histograms_are_fetched_too() -> None:
    wanted = asked(
        "n", "--expr", "-1", "n", "-f", "f", "--filter", "s == \"a\" && $comm != 'x'",
        "--histogram", "len(s)", "--by", "$pid",
    )  # fmt: skip
    assert wanted.shown == ("n", "-1")
    assert wanted.further == ("s", "len(s)")
    assert wanted.filter is not None
    assert [each.expression for each in comparisons(wanted.filter)] == ["s", "$comm"]


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (("-f", "f"), True),
        (("n", "-f", "f"), True),
        (("-f", "f", "--summary"), False),
        (("-f", "f", "--histogram", "n"), False),
        (("-f", "f", "--sum", "n", "--sum", "m", "--by", "$comm"), False),
        (("n", "-f", "f", "--sum", "m"), True),
        (("n", "-f", "f", "--summary"), True),
    ],
)
def test_single_events_are_printed_where_nothing_else_is(
    words: tuple[str, ...], lines: bool
) -> None:
    assert asked(*words).lines is lines


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("$comm", ("$comm",)),
        ("a, b", ("a", "b")),
        ("a,a", ("a",)),
        ("f(a,b),m[1,2],'x,y'", ("f(a,b)", "m[1,2]", "'x,y'")),
    ],
)
def test_keys_are_apart_at_commas(text: str, keys: tuple[str, ...]) -> None:
    assert asked("-f", "f", "--count-by", text).keys == keys
    assert asked("-f", "f", "--sum", "n", "--by", text).keys == keys


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--summary",), "-f FUNCTION is missing"),
        (("-f", "f", "-p", "1", "--", "true"), "exclude each other"),
        (("-f", "f", "--latency", "--since", "g"), "exclude each other"),
        (("-f", "f", "--return", "--since", "g"), "exclude each other"),
        (("-f", "f", "--by", "n"), "--by needs --histogram"),
        (("-f", "f", "--by", "n", "--count-by", "m"), "--by and --count-by exclude each other"),
        (("-f", "f", "--top", "3"), "--top needs a table"),
        (("-f", "f", "--interval", "1s"), "--interval needs a table"),
        (("n", "-f", "f", "--interval", "1s", "--sum", "n"), "leave out EXPR"),
        (("-f", "f", "--linear", "n"), "--linear takes STEP,EXPR"),
        (("-f", "f", "--linear", "0,n"), "--linear takes STEP,EXPR"),
        (("-f", "f", "--linear", "-5,n"), "--linear takes STEP,EXPR"),
        (("-f", "f", "--linear", "x,n"), "such as `10,n`, not `x,n`"),
        (("-f", "f", "--linear", "10,"), "--linear takes STEP,EXPR"),
        (("-f", "f", "--count-by", "a,,b"), "an expression is missing in `a,,b`"),
        (("-f", "f", "--count-by", ""), "-f FUNCTION|an expression is missing"),
        (("-f", "f", "--at", "+4", "--latency"), "--at excludes --return and --latency"),
        (("-f", "f", "-f", "g", "--at", "+4"), "--at takes one function"),
        (("n @ f", "--latency"), "--latency measures whole functions: name them with -f FUNCTION"),
        (("-f", "f", "--stack", "--histogram", "n"), "name an EXPR"),
        (("n", "-f", "f", "--calls-only"), "--calls-only shows no values: leave it or EXPR out"),
        (("-f", "f", "--stack-bytes", "4096"), "--stack-bytes needs --stack"),
        (("-f", "f", "--stack=fp", "--stack-bytes", "4096"), "--stack-bytes needs --stack"),
        (("-f", "f", "--stack", "--stack-bytes", "8"), "takes 64 to 64512, not `8`"),
        (("-f", "f", "--value-bytes", "300"), "--value-bytes takes 512 to 61440, not `300`"),
        (("-f", "f", "--engine", "tracefs", "--value-bytes", "600"), "--value-bytes needs eBPF"),
        (("-f", "f", "--stack", "--stack-bytes", "65536"), "takes 64 to 64512, not `65536`"),
        (("-f", "f", "--format", "folded"), "add --stack"),
        (("n", "-f", "f", "--format", "folded", "--stack"), "leave EXPR and other totals out"),
        (("-f", "f", "--format", "folded", "--stack", "--summary"), "leave EXPR and other totals"),
        (("-f", "f", "--format", "speedscope"), "--format speedscope counts stacks: add --stack"),
        (("n", "-f", "f", "--format", "perfetto", "--histogram", "n"), "has no tables: take --sum"),
        (("-f", "f", "--format", "perfetto", "--summary"), "has no tables: take --sum"),
        (("-f", "f", "--format", "perfetto", "--sum", "n", "--by", "s"), "has no tables"),
        (("-f", "f", "--filter", "$latency > 1"), "$latency needs"),
        (("-f", "f", "--histogram", "$latency"), "$latency needs"),
    ],
)
def test_options_that_do_not_go_together(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(Usage, match=message.replace("$", r"\$")):
        asked(*words)


def test_a_filter_that_does_not_parse_is_shown_with_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(Refused) as refused:
        asked("-f", "f", "--filter", "n > 1", "--filter", "n = 1")
    assert refused.value.text == "n = 1"
    assert main(["trace", "-x", "b", "-f", "f", "--filter", "n = 1"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error[FC0751]")
    assert " 1 | n = 1\n   | ^^^^^" in shown
    assert main(["trace", "-x", "b"]) == 2
