"""The probes of a family, and the expressions that each of them is asked."""

from __future__ import annotations

from random import Random

from fetchc.conformance.c.draw import draw, draw_signatures
from fetchc.conformance.c.expressions import Root
from fetchc.conformance.c.family import Family, Variable
from fetchc.conformance.c.program import Probe
from fetchc.conformance.c.types import Pointer, Reference, resolved, short
from fetchc.conformance.c.walks import leaves, walk

__all__ = ["layouts", "signatures"]

_LEAVES = 12  # of one parameter or result


def layouts(
    random: Random, number: int, many: int, roots: int | None = None, plus: bool = False
) -> tuple[Family, list[Probe]]:
    """A family with a probe for each structure; ``many`` expressions walk from what it sees."""
    family = draw(random, number, roots, plus)
    probes = []
    for root, signature in zip(family.roots, family.signatures, strict=True):
        others = [Variable(f"v{n}", it) for n, it in enumerate(signature.parameters)]
        probe = Probe(short(root.tag), [Variable("p", Pointer(root)), *others], signature.result)
        for index in range(many):
            stage, asked = _drawn_root(random, family, probe, index)
            probe.asked[stage].append(walk(random, asked, family.roots))
        probes.append(probe)
    return family, probes


def _drawn_root(random: Random, family: Family, probe: Probe, index: int) -> tuple[str, Root]:
    which = random.random()
    if probe.result is not None and index % 6 == 5:
        return "leave", _result(probe)
    if which < 0.12:
        each = random.choice(family.globals)
        return random.choice(["entry", "inner"]), Root(each.name, each.name, each.type)
    first = probe.parameters[0]
    each = first if which < 0.6 else random.choice(probe.parameters)
    if index % 4 == 0:
        name = random.choice(["", "l_"]) + each.name
        return "inner", Root(name, name, each.type)
    return "entry", _parameter(each, each is not first)


def signatures(
    random: Random, number: int, functions: int, plus: bool = False
) -> tuple[Family, list[Probe]]:
    """A family with probes of random parameters and results, whose every part is asked."""
    family = draw_signatures(random, number, functions, plus)
    probes = []
    for index, signature in enumerate(family.signatures):
        taken = [Variable(f"v{n}", it) for n, it in enumerate(signature.parameters)]
        probe = Probe(f"F{number}_{index}", taken, signature.result)
        for each in taken:
            probe.asked["entry"] += leaves(random, _parameter(each, True), _LEAVES)
        if probe.result is not None:
            probe.asked["leave"] += leaves(random, _result(probe), _LEAVES)
        probes.append(probe)
    return family, probes


def _parameter(each: Variable, held: bool) -> Root:
    reference = isinstance(resolved(each.type), Reference)
    return Root(each.name, each.name, each.type, held and not reference)


def _result(probe: Probe) -> Root:
    assert probe.result is not None
    return Root("$retval", f"(*from_{probe.tag})", probe.result, True)
