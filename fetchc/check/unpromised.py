"""Parameters at the entry, of languages that promise no calling convention (Rust).

Their compilers take the registers of C's convention, in an order of their own. So the debug
information alone tells which one, and is believed where it names one of these: at the first
instruction that is what the caller passed. What it says of the frame is of later instructions.
"""

from __future__ import annotations

from fetchc.check.evidence import evidence
from fetchc.program.entities import Absent, Function, InMemory, InRegister, Pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.program.entities import Place, Variable
    from fetchc.quantities import DwarfRegister

__all__ = ["argument_registers", "entry_place", "registers"]


def entry_place(site: Site, function: Function, variable: Variable) -> Place:
    """Where ``variable`` is at the first instruction of ``function``."""
    stated = site.program.place(variable, function, function.address)
    passed = argument_registers(site, function)
    if isinstance(stated, InMemory) and stated.register in passed:
        return stated  # passed by the address of a copy
    found = evidence(site, function, variable)
    if found is not None and registers(found) <= passed:
        return found
    name = site.language.name
    return Absent(
        "FC0401",
        f"{name} promises no calling convention, and the debug information does not say where "
        "it is before the first statement (`--at body`)",
    )


def registers(place: Place) -> set[DwarfRegister]:
    """The registers that have the value, none where it is anywhere else."""
    match place:
        case InRegister(register=register):
            return {register}
        case Pieces(pieces=pieces):
            return {register for piece in pieces for register in registers(piece.place)}
        case _:
            return set()


def argument_registers(site: Site, function: Function) -> set[DwarfRegister]:
    """The registers that C's convention passes arguments in."""
    from fetchc.abi import convention_for

    as_c = Function(function.name, "", function.address, None, None, "c", "", True)
    convention = convention_for(site.program, as_c)
    return {*convention.integer_registers, *convention.float_registers}
