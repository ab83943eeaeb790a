"""Variable-length arrays as a whole: the range of as many elements as the program has made them."""

from __future__ import annotations

from fetchc.check import indices
from fetchc.check.evidence import optimised_by_gcc
from fetchc.check.typed import Held, Ranged, Reckoned, Term
from fetchc.program.entities import InMemory, is_on_entry
from fetchc.program.types import ArrayType, CharType, IntType, RangeType
from fetchc.quantities import ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker, Site
    from fetchc.check.typed import Typed
    from fetchc.program.entities import Function

__all__ = ["in_full"]


def in_full(checker: Checker, node: Typed) -> Ranged | None:
    """``a[0:n]`` of the array ``node`` that has ``n`` elements at the site; None of all others."""
    made, site = checker.resolved(node.type), checker.site
    if not isinstance(made, ArrayType) or made.count is not None or site.function is None:
        return None
    if site.function.die is None or checker.size(made.element) is None:
        return None
    found = site.program.array_length(checker.bare(node.type), site.function, site.address)
    if found is None or is_on_entry(found[0]) or not site.program.little_endian:
        return None
    place, more = found
    if isinstance(place, InMemory) and not _is_written(site, site.function):
        return None
    # Its type is 8 bytes wide, and the place often one of the 4 that it was made of (clang 14 with
    # -O1, a spilled `n`). No stack has room for 2^32 elements. Of none the upper bound is -1.
    word = checker.program.intern(IntType("int", ByteSize(4), True))
    number: Typed = Held(place, "", word, node.span)
    if more:
        number = Reckoned((Term(number, None, 1, 1),), more, False, word, node.span)
    first = indices.element(checker, node, 0, node.span, node.span)
    name = f"{checker.spell(made.element)}[]"
    element = checker.resolved(made.element)
    is_text = isinstance(element, CharType) and element.name in ("char", "char8_t")
    encoding = "text" if is_text else ""
    type_id = checker.program.intern(RangeType(name, None, made.element, encoding))
    return Ranged(first, 0, 0, number, None, type_id, node.span)


def _is_written(site: Site, function: Function) -> bool:
    # gcc -O0 reckons the lengths that types of parameters have in statements of its own, in front
    # of the first one of the body: those have lines up to that of the opening brace.
    if optimised_by_gcc(function):
        return True  # lists tell from where on the places hold
    code = site.program.code_map()
    told = None if code is None else code.lines_of(function)
    if told is None:
        return False
    lines = told[1]
    opening = max([line for line, starts in lines.items() if function.address in starts], default=0)
    body = [start for line, starts in lines.items() if line > opening for start in starts]
    return site.address >= min(body, default=site.address + 1)
