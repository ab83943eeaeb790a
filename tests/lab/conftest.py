"""The kernels of a run, and what each round came to at the end of the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.kernel_lab import LabKernel, chosen

SECONDS = 900  # for a test: on a busy machine emulation takes many times its minute


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the lab have more time than others."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(SECONDS))


@pytest.fixture(params=chosen(), ids=lambda kernel: kernel.label)
def lab_kernel(request: pytest.FixtureRequest) -> LabKernel:
    """Each kernel of this run; skipped with the reason where it cannot be booted."""
    kernel: LabKernel = request.param
    reason = kernel.why_not()
    if reason:
        pytest.skip(reason)
    return kernel


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[object], None]:
    """Print a line at the end of the run."""
    return lambda text: record_property("lab", str(text))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The lines that tests printed, from all processes of pytest-xdist."""
    lines = [
        str(value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, value in report.user_properties
        if name == "lab"
    ]
    if lines:
        terminalreporter.section("kernel lab")
        terminalreporter.write("\n".join([*lines, ""]))
