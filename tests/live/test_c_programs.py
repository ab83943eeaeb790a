"""Every layout of C, by two compilers: each value that the kernel fetches is what was printed."""

from __future__ import annotations

import pytest

from tests.live.comparing import compare, counts
from tests.support.programs import expressions, fixtures
from tests.support.tracefs import Session, require_uprobes

pytestmark = pytest.mark.live


@pytest.mark.parametrize("name", fixtures("c/layouts"))
def test_every_value_is_what_the_program_printed(name: str) -> None:
    require_uprobes()
    with Session() as session:
        outcome = compare(session, name)
    assert not outcome.wrong, "\n".join(outcome.wrong)
    assert outcome.compared >= 300


@pytest.mark.parametrize("name", fixtures("c/layouts"))
def test_no_expression_was_lost(name: str) -> None:
    printed = {function: len(texts) for function, texts in expressions(name).items()}
    assert printed == counts("c/layouts")
