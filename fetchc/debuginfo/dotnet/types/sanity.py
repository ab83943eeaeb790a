"""Whether the core library that was found is the one that the image runs with, as far as it shows.

Layouts differ from release to release, so one that does not fit gives wrong bytes. Two things tell:
an image refers to assemblies of the release that it was compiled for, and a core library declares
the fields of texts, whose places are also written down in targets/runtime/dotnet.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.types.closed import Instance
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.types.types import DotnetTypes
    from fetchc.target.dotnet_runtimes import Runtime

__all__ = ["must_fit", "must_have_texts_at"]

# The assemblies whose version is that of the release, from .NET 5 on.
TELLING = ("System.Runtime", "System.Private.CoreLib")
FIRST = 5
TEXT = "System.String"
NAMES = (("_stringLength", "m_stringLength"), ("_firstChar", "m_firstChar"))


def must_fit(assembly: Assembly, core: Assembly, version: tuple[int, int]) -> None:
    """Raise DebugInfoError FC0905 where an image is for a newer release than its core library."""
    metadata = assembly.metadata
    for row in metadata.rows("AssemblyRef"):
        major = row[0]
        if major >= FIRST and major > version[0] and metadata.text(row[6]) in TELLING:
            raise DebugInfoError(
                "FC0905",
                assembly.path,
                f"it was compiled for .NET {major}, and the core library {core.path} is of "
                f".NET {version[0]}.{version[1]}",
                help="name the folder of the runtime that it runs with: `--reference DIR`",
            )


def must_have_texts_at(types: DotnetTypes, runtime: Runtime) -> None:
    """Raise DebugInfoError FC0905 where the core library's texts are not where they should be."""
    core = types.closed.references.core()
    row = core.type_named(TEXT)
    if not row or not core.fields(row):
        return  # one of a test, or cut to what a compiler needs
    fields = types.layouts.of(types.closed.number(Instance(core, row, ()))).fields
    found = {field.name: field.offset + runtime.fields for field in fields}
    places = (runtime.string.length, runtime.string.text)
    told = tuple([next((found[one] for one in names if one in found), None) for names in NAMES])
    if told != places:
        raise DebugInfoError(
            "FC0905",
            core.path,
            f"its texts have length and letters at {told[0]} and {told[1]}, and those of .NET "
            f"{runtime.version[0]}.{runtime.version[1]} at {places[0]} and {places[1]}",
            help="name the folder of the runtime that the program runs with: `--reference DIR`",
        )
