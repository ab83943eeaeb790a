"""The contract "no_circles" of pyproject.toml: inside a package no chain of imports leads back.

An import inside a function counts, too: it hides the circle from the interpreter, not from a
reader. What is imported for annotations alone (``if TYPE_CHECKING:``) does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import grimp
from importlinter import Contract, ContractCheck, fields, output

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["NoCircles", "circles"]


class NoCircles(Contract):
    """``packages``: the packages that have to be free of circles, with all that is in them."""

    type_name = "no_circles"

    packages = fields.ListField(subfield=fields.StringField())

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """Read the imports of the root package again, without those for annotations."""
        root = self.session_options["root_packages"][0]
        imports = grimp.build_graph(root, exclude_type_checking_imports=True, cache_dir=None)
        found = {}
        for package in cast("list[str]", self.packages):
            if package not in imports.modules:
                raise ValueError(f"there is no package {package}")
            inside = {package, *imports.find_descendants(package)}
            known = {
                module: imports.find_modules_directly_imported_by(module) & inside
                for module in inside
            }
            found[package] = circles(known)
        return ContractCheck(kept=not any(found.values()), metadata={"circles": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line a circle."""
        for package, found in check.metadata["circles"].items():
            for circle in found:
                output.print_error(f"{package} has a circle of imports: {', '.join(circle)}")


def circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module, each sorted.

    Source: R. Tarjan, "Depth-First Search and Linear Graph Algorithms" (1972).
    """
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        path.append(module)
        for target in sorted(imports[module]):
            if target not in order:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in path:
                lowest[module] = min(lowest[module], order[target])
        if lowest[module] == order[module]:
            start = path.index(module)
            component = sorted(path[start:])
            del path[start:]
            if len(component) > 1:
                found.append(component)

    for module in sorted(imports):
        if module not in order:
            visit(module)
    return sorted(found)
