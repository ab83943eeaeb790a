"""What the kernel says becomes a diagnostic with its place. The logs are those of Linux 6.18."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from fetchc.diag.diagnostic import TracerError
from fetchc.diag.render import render
from fetchc.tracer.trace_instance import refused_definition, refused_filter
from fetchc.tracer.tracefs import Tracefs

LOG = """\
[  101.234567] trace_uprobe: error: Invalid register name
  Command: p:g/other /bin/true:0x10 a=%xmm0
                                      ^
[  102.234567] trace_uprobe: error: Unknown type is specified
  Command: p:g/e /bin/true:0x10 a=%di:u128 b=%si
                                      ^
"""
EINVAL = OSError(errno.EINVAL, "Invalid argument")


def refused(tmp_path: Path, log: str | None, line: str, error: OSError = EINVAL) -> TracerError:
    if log is not None:
        (tmp_path / "error_log").write_text(log)
    return refused_definition(Tracefs(str(tmp_path)), line, error)


def test_the_kernels_words_and_place(tmp_path: Path) -> None:
    refusal = refused(tmp_path, LOG, "p:g/e  /bin/true:0x10 a=%di:u128 b=%si")
    assert render(refusal.diagnostics[0], refusal.text) == (
        "error[FC0705]: the kernel refused the definition of `g/e`\n"
        "  --> <argument>:1:28\n"
        "   |\n"
        " 1 | p:g/e /bin/true:0x10 a=%di:u128 b=%si\n"
        "   |                            ^^^^ refused here\n"
        "   = note: the kernel said: Unknown type is specified"
    )


@pytest.mark.parametrize("log", [None, "", LOG])
def test_a_refusal_that_is_not_logged_has_its_error(tmp_path: Path, log: str | None) -> None:
    refusal = refused(tmp_path, log, "p:g/e /bin/true:f")
    (diagnostic,) = refusal.diagnostics
    assert diagnostic.primary is None
    assert diagnostic.notes == ("its error is: Invalid argument (EINVAL)",)


def test_the_latest_of_equal_commands_counts(tmp_path: Path) -> None:
    again = LOG.replace("Unknown type is specified", "An older message")
    refusal = refused(tmp_path, again + LOG, "p:g/e /bin/true:0x10 a=%di:u128 b=%si")
    assert refusal.diagnostics[0].notes == ("the kernel said: Unknown type is specified",)


def test_a_caret_behind_the_line_is_drawn_at_its_end(tmp_path: Path) -> None:
    log = "[    1.0] trace_uprobe: error: Late\n  Command: p:g/e\n" + " " * 40 + "^\n"
    refusal = refused(tmp_path, log, "p:g/e")
    primary = refusal.diagnostics[0].primary
    assert primary is not None
    assert (primary.span.start, primary.span.end) == (4, 5)


def test_what_exists_already_is_a_code_of_its_own(tmp_path: Path) -> None:
    error = OSError(errno.EEXIST, "File exists")
    (diagnostic,) = refused(tmp_path, "", "p:g/e /bin/true:0x10", error).diagnostics
    assert diagnostic.code == "FC0706"
    assert diagnostic.message == "an event `g/e` exists already"


def test_words_that_mislead_are_explained(tmp_path: Path) -> None:
    log = LOG.replace("Unknown type is specified", "String accepts only memory argument")
    refusal = refused(tmp_path, log, "p:g/e /bin/true:0x10 a=%di:u128 b=%si")
    assert refusal.diagnostics[0].notes[1] == "texts and arrays are read from memory only"


def test_a_filter_has_the_parsers_words() -> None:
    shown = "((id ==))\n     ^\nparse_error: Missing field name and/or value\n"
    (refusal,) = refused_filter("id ==", shown, EINVAL).diagnostics
    assert refusal.code == "FC0708"
    assert refusal.notes == ("the kernel said: Missing field name and/or value",)


def test_a_filter_that_is_refused_without_words_has_its_error() -> None:
    (refusal,) = refused_filter("id ==", "none\n", EINVAL).diagnostics
    assert refusal.notes == ("its error is: Invalid argument (EINVAL)",)
