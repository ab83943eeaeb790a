"""Parameters of Go that some calls lose: a reader is given what tells these calls."""

from __future__ import annotations

from fetchc.check.go_parameters import lost_by
from fetchc.ir.fetch import Decode, Fetch, Register, Word
from fetchc.tracer.shape import Kept, Leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Checker
    from fetchc.tracer.plan.fields import Fields
    from fetchc.tracer.shape import Shape

__all__ = ["kept"]

_LOST = "FC0623"


def kept(checker: Checker, fields: Fields, shape: Shape) -> Shape:
    """``shape``, as a fault in calls that lost what it is made of."""
    site = checker.site
    if site.function is None or not any(one.code == _LOST for one in checker.warnings):
        return shape
    found = lost_by(site, site.function)
    assert found is not None
    register, address = found
    machine = site.architecture
    field = fields.add(Fetch(Register(machine.registers[register]), Word()))
    word = Leaf(field, Decode("address", 8 * machine.word_bytes))
    return Kept(word, address - site.address, shape)
