"""Results, interfaces, closures, generics, maps of Go: each value is what the program printed."""

from __future__ import annotations

import pytest

from tests.live.comparing import compare, counts
from tests.support.programs import expressions, fixtures
from tests.support.tracefs import Session, require_uprobes

pytestmark = pytest.mark.live

PROGRAM = "go/features"


@pytest.mark.parametrize("name", fixtures(PROGRAM))
def test_every_value_is_what_the_program_printed(name: str) -> None:
    require_uprobes()
    with Session() as session:
        outcome = compare(session, name)
    assert not outcome.wrong, "\n".join(outcome.wrong)
    assert outcome.compared >= 150


@pytest.mark.parametrize("name", fixtures(PROGRAM))
def test_no_expression_was_lost(name: str) -> None:
    printed = {function: len(texts) for function, texts in expressions(name).items()}
    wanted = counts(PROGRAM)
    if name.endswith("/go1.15"):  # generics came with Go 1.18
        wanted = {function: n for function, n in wanted.items() if "[go.shape." not in function}
    assert printed == wanted
