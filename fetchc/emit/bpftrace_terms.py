"""Terms as expressions of bpftrace: where an element is whose index varies.

Each expression is an unsigned number of 64 bits, as a term is. What is loaded, and each condition,
is a variable: bpftrace 0.27 ends by a signal at some that have ``? :`` inside of ``? :``, and BPF's
verifier refuses a load that a condition has chosen the register of. A load that fails is 0.
"""

from __future__ import annotations

from fetchc.emit.output_formats import total
from fetchc.ir.fetch import (
    Absolute,
    Calculated,
    Chosen,
    Deref,
    Image,
    OfEntry,
    OfHit,
    Part,
    Register,
)
from fetchc.ir.term_operators import NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.ir.fetch import ElementAddress, Term, Value

__all__ = ["Place", "TermWriter", "literal", "pointer"]

Place = tuple[str, int, bool]
"""An expression, bytes after it, and whether the memory there is a program's."""

_NO_MEMORY = "(uint64)0xff80000000000000"  # as of targets/backend/libbpf.toml
_LONG = 80  # characters of an expression that is a variable
_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "eq": "==",
              "lt": "<", "div": "/", "lsh": "<<", "rsh": ">>"}  # fmt: skip


class TermWriter:
    """Writes the address of one element.

    ``word`` gives the expression of a value and ``address`` the place that a load reads at, as the
    values of an event have them; ``variable`` makes a variable of an expression.
    """

    def __init__(
        self,
        word: Callable[[Value], str],
        address: Callable[[Deref], Place],
        variable: Callable[[str], str],
    ) -> None:
        self._word = word
        self._address = address
        self._variable = variable
        self._known: dict[int, tuple[Term, str]] = {}  # by identity: parts of a term are shared
        self._missing: list[str] = []  # conditions under which there is no element

    def element(self, element: ElementAddress) -> str:
        """The variable with the address, which has no memory where the element is out of range."""
        address = self._text(element.address)
        first = element.address
        while isinstance(first, Calculated):
            first = first.left
        if isinstance(first, Deref):  # where the elements are, which could not be read if it is 0
            self._missing.append(f"{self._text(first)} == 0")
        if self._missing:
            address = f"({' || '.join(self._missing)} ? {_NO_MEMORY} : {address})"
        return self._variable(address)

    def _text(self, term: Term) -> str:
        known = self._known.get(id(term))
        if known is None:
            known = self._known[id(term)] = term, self._written(term)
        return known[1]

    def _written(self, term: Term) -> str:
        match term:
            case int():
                return f"(uint64){literal(term)}"
            case Calculated():
                text = self._calculated(term)
                return self._variable(text) if "?" in text or len(text) > _LONG else text
            case Chosen(condition=condition, nonzero=nonzero, zero=zero):
                both = self._text(nonzero), self._text(zero)
                return self._variable(f"({self._text(condition)} != 0 ? {both[0]} : {both[1]})")
            case Part():
                return self._loaded(term)
            case Register():
                return f"(uint64){self._word(term)}"
            case Image(offset=offset):
                base, below, _ = self._address(Deref(Image(0), offset))
                return f"(uint64)({total(base, below)})"
            case Absolute(address=address):
                return f"(uint64){literal(address)}"
            case OfHit() | OfEntry():
                raise AssertionError(f"no index has this: {term!r}")
            case _:
                return self._variable(f"(uint64){self._word(term)}")

    def _loaded(self, part: Part) -> str:
        if part.base == NOWHERE:  # a load that is there to fail
            self._missing.append(self._condition(1 if part.when is None else part.when))
            return "(uint64)0"
        if isinstance(part.base, int | Part | Calculated | Chosen | OfHit | OfEntry):
            place = self._text(part.base), part.offset, part.user
        else:
            place = self._address(Deref(part.base, part.offset, part.user))
        base, offset, user = place
        loaded = f"(uint64)*(uint{8 * part.size}*)({pointer((base, offset, user))})"
        if part.when is not None:
            loaded = f"({self._text(part.when)} != 0 ? {loaded} : (uint64)0)"
        return self._variable(loaded)

    def _condition(self, term: Term) -> str:
        # That the term is not 0.
        match term:
            case Calculated("eq", Calculated("lt", less, than), 0):
                return f"{self._text(less)} >= {self._text(than)}"
            case _:
                return f"{self._text(term)} != 0"

    def _calculated(self, term: Calculated) -> str:
        operation, right = term.operation, term.right
        if operation == "arsh":
            match term.left:
                case Calculated("lsh", low, int(over)) if over == right and over in (32, 48, 56):
                    return f"(uint64)(int64)(int{64 - over}){self._text(low)}"
            value, count = self._variable(self._text(term.left)), self._text(right)
            return f"((int64){value} < 0 ? ~(~{value} >> {count}) : {value} >> {count})"
        left = self._text(term.left)
        if operation == "and" and right == 0:
            return "(uint64)0"  # of what has to be read
        by = self._text(right)
        if operation in ("add", "or") and by == "(uint64)0":
            return left
        text = f"{left} {_OPERATORS[operation]} {by}"
        if operation in ("eq", "lt"):
            return f"({text} ? (uint64)1 : (uint64)0)"
        if operation == "div":
            return f"({by} == 0 ? (uint64)0 : {text})"
        return f"({text})"


def pointer(place: Place) -> str:
    """The pointer that bpftrace loads from at a place."""
    base, offset, user = place
    return f"uptr({total(base, offset)})" if user else total(base, offset)


def literal(value: int) -> str:
    """A number as bpftrace reads it."""
    return f"{value:#x}" if value > 0x7FFFFFFF else str(value)
