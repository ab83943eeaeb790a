"""Frozen records."""

from __future__ import annotations

import pytest

from fetchc.diag.diagnostic import Diagnostic, reject
from fetchc.source import Span


def test_a_record_with_other_values_of_some_fields() -> None:
    (said,) = reject("FC0309", "no length", Span(0, 1), "here", reason="no length").diagnostics
    other = said.replaced(help="write it", notes=("one",))
    assert (other.help, other.notes) == ("write it", ("one",))
    assert (other.code, other.primary, other.reason) == ("FC0309", said.primary, "no length")
    assert other.replaced(help=None, notes=()) == said
    assert said.help is None


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError, match="no free field colour"):
        Diagnostic("FC0101", "what").replaced(colour="red")
