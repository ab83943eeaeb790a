"""Properties that fetchc takes for a field: their code returns that field, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.assemblies import Assembly
from fetchc.target.dotnet_runtimes import runtime
from tests.support.dotnet import NET9, NETCORE21, NETCORE31, missing

# The body of seven bytes: `ldarg.0; ldfld FIELD; ret`. Source: ECMA-335, II.25.4.2, III.
TINY, LOAD, RETURN = 7 << 2 | 2, b"\x02\x7b", b"\x2a"
MONO = Path("/usr/lib/mono/4.5")
CASES = [
    (NETCORE21, "coreclr", (2, 1)),
    (NETCORE31, "coreclr", (3, 1)),
    (NET9, "coreclr", (9, 0)),
    (MONO, "mono", (6, 8)),
]
LIBRARIES = (
    "System.Private.CoreLib", "System.Collections", "System.Collections.NonGeneric",
    "System.Runtime.Numerics", "mscorlib", "System", "System.Numerics",
)  # fmt: skip
# Those that do something besides.
OTHERS = {("System.Nullable`1", "Value")}  # it throws where there is none, which a trace tells


def returned(assembly: Assembly, row: int, prop: str) -> str:
    """The field that a property's code returns; empty where it does something else."""
    metadata = assembly.metadata
    getter = next(
        one for one in assembly.methods(row) if assembly.method_name(one) == f"get_{prop}"
    )
    cursor = assembly.image.cursor(metadata.row("MethodDef", getter)[0], "method body")
    body = bytes([cursor.u8() for _ in range(8)])
    if body[0] != TINY or body[1:3] != LOAD or body[7:8] != RETURN:
        return ""
    table, number = body[6], int.from_bytes(body[3:6], "little")
    if table == 4:
        return assembly.field_name(number)
    return metadata.text(metadata.row("MemberRef", number)[1]) if table == 10 else ""


@pytest.mark.parametrize(("folder", "kind", "version"), CASES)
def test_each_is_its_field(folder: Path, kind: str, version: tuple[int, int]) -> None:
    if folder == MONO and not (MONO / "mscorlib.dll").exists():
        pytest.skip("no Mono: .ci/setup installs it")
    if folder != MONO and (reason := missing(folder)):
        pytest.skip(reason)
    files = [folder / f"{name}.dll" for name in LIBRARIES]
    assemblies = [Assembly(str(one)) for one in files if one.exists()]
    held: set[tuple[str, str]] = set()
    others: set[tuple[str, str]] = set()
    for name, listed in runtime(kind, version).properties.items():
        for assembly in assemblies:
            if row := assembly.type_named(name):
                for prop, field in listed.items():
                    same = returned(assembly, row, prop) == field
                    (held if same else others).add((name, prop))
                break
    assert len(held) > 50
    assert others == OTHERS
