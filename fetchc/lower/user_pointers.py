"""The kernel's pointers into the memory of the program that a probe finds running."""

from __future__ import annotations

from fetchc.check.typed_tree import Convert, Shift
from fetchc.program.types import USER, NamedType, PointerType, QualifiedType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.probe_site import Site
    from fetchc.check.typed_tree import Typed

__all__ = ["leads_to_user"]


def leads_to_user(site: Site, node: Typed) -> bool:
    """Whether the kernel's source marks the pointer as one of the program's (``__user``)."""
    while True:
        made = site.program.type(node.type)
        while isinstance(made, NamedType | QualifiedType):
            made = site.program.type(made.target)
        if isinstance(made, PointerType):
            target = site.program.type(made.target)
            while isinstance(target, QualifiedType):
                if target.qualifier == USER:
                    return True
                target = site.program.type(target.target)
        if not isinstance(node, Convert | Shift):
            return False
        node = node.base  # a cast, and adding to it, does not move what it leads to
