"""Numbers and lines of maps to the methods of an image."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.debuginfo.dotnet.perf_map_methods import Mapped, MappedMethods
from fetchc.diag.diagnostic import CompileError
from fetchc.quantities import Address

SAMPLE = Path(__file__).parents[4] / "corpus/dotnet/echo/bin/sample.dll"
ECHO = "sample.Providers.EchoProvider.calculateEchoValue(string)"


@pytest.fixture
def methods() -> MappedMethods:
    return MappedMethods(DotnetProgram(str(SAMPLE)))


def test_all_methods_are_in_order(methods: MappedMethods) -> None:
    offsets = [one.offset for one in methods.methods]
    assert offsets == sorted(set(offsets))
    assert len(offsets) == 6
    for one in methods.methods:
        assert methods.holding(one.offset) is one
        assert methods.holding(one.offset + one.size - 1) is one
    assert methods.holding(offsets[0] - 1) is None
    assert methods.holding(1 << 40) is None


def test_either_convention_of_a_number(methods: MappedMethods) -> None:
    echo = next(one for one in methods.methods if one.symbol == ECHO)
    assert int(echo.address) != int(echo.offset)
    assert methods.begun(echo.address) is echo
    assert methods.begun(echo.offset) is echo
    assert echo.shown == (
        "[sample] sample.Providers.EchoProvider::calculateEchoValue(string)[ReadyToRun]"
    )
    crossgen = "instance string [sample] sample.Providers.EchoProvider::calculateEchoValue(string)"
    for name in (echo.symbol, echo.shown, crossgen, ""):
        assert methods.begun(echo.address, name) is echo


def test_what_no_method_fits(methods: MappedMethods) -> None:
    echo = next(one for one in methods.methods if one.symbol == ECHO)
    with pytest.raises(CompileError, match=r"FC0206: no method of .* begins at 0x\w+1, as address"):
        methods.begun(echo.offset + 1)
    with pytest.raises(CompileError, match=r"is not `Server.Handle`"):
        methods.begun(echo.offset, "Server.Handle")


def test_a_number_of_two_methods_needs_its_name(methods: MappedMethods) -> None:
    first, second = methods.methods[:2]
    # As an image where the one's address is the other's offset has it.
    other = Mapped(Address(first.offset), second.size, second.offset, second.symbol, second.shown)
    methods.methods = (first, other, *methods.methods[2:])
    with pytest.raises(CompileError, match=r"is the address of one method of .* the offset of an"):
        methods.begun(first.offset)
