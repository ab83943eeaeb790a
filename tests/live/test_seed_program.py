"""The seed write-up's program: every value that the kernel fetches is what it printed.

Go by both calling conventions, optimised and not, and with the real package dns.
"""

from __future__ import annotations

import pytest

from tests.live.comparing import compare, counts
from tests.support.programs import expressions, fixtures
from tests.support.tracefs import Session, require_uprobes

pytestmark = pytest.mark.live

PROGRAMS = ("go/dnsforward", "go/miekg")


@pytest.mark.parametrize("name", [name for program in PROGRAMS for name in fixtures(program)])
def test_every_value_is_what_the_program_printed(name: str) -> None:
    require_uprobes()
    with Session() as session:
        outcome = compare(session, name)
    assert not outcome.wrong, "\n".join(outcome.wrong)
    assert outcome.compared >= 80


@pytest.mark.parametrize("name", [name for program in PROGRAMS for name in fixtures(program)])
def test_no_expression_was_lost(name: str) -> None:
    program = name.rpartition("/")[0]
    printed = {function: len(texts) for function, texts in expressions(name).items()}
    generic = {function for function in counts(program) if "[go.shape." in function}
    wanted = counts(program)
    if name.startswith("go/dnsforward/go1.15"):  # generics came with Go 1.18
        wanted = {function: count for function, count in wanted.items() if function not in generic}
    assert printed == wanted
