"""How much the run compared, printed at its end, whatever process did it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from fetchc.conformance.results import Tally

_PROPERTY = "conformance"
_COUNTED = ("programs", "types", "functions", "expressions", "compared")


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[Tally], None]:
    """Count a program in; its numbers also stand in the captured output."""

    def printed(tally: Tally) -> None:
        print(f"{request.node.name}: {tally}")
        counts = {name: getattr(tally, name) for name in _COUNTED}
        counts["refused"] = tally.refused.total()
        request.node.user_properties.append((_PROPERTY, counts))

    return printed


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    totals: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                for name, counts in report.user_properties:
                    if name == _PROPERTY:
                        totals.update(counts)
    if totals:
        listed = ", ".join(f"{totals[name]} {name}" for name in (*_COUNTED, "refused"))
        terminalreporter.write_line(f"conformance of values: {listed}")
