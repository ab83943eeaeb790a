"""Which runtime an image is for, and the folders that hold the assemblies it refers to."""

from __future__ import annotations

import os

from fetchc.debuginfo.dotnet.image.ready_to_run import ReadyToRun
from fetchc.diag.errors import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly

__all__ = ["folders_of", "version_of"]

# Where packages install .NET, beside DOTNET_ROOT. Source: dotnet/designs, install-locations.md.
ROOTS = ("/usr/share/dotnet", "/usr/lib/dotnet", "/usr/lib64/dotnet")
MONO = "/usr/lib/mono/4.5"  # of Debian's packages, and of mono-project.com's
INSTALL_LOCATION = "/etc/dotnet/install_location"
# Versions of the ReadyToRun format, of core libraries whose own version is 4.0.0.0.
OLD_FORMATS = {(3, 1): (3, 1), (3, 0): (3, 0)}
CORE_FILE = "System.Private.CoreLib.dll"
LARGEST_CONFIG = 1 << 20


def version_of(core: Assembly) -> tuple[str, tuple[int, int]]:
    """The runtime that a core library is part of: ``coreclr`` or ``mono``, and its version.

    Raises DebugInfoError FC0905 where it cannot be told.
    """
    if core.name == "mscorlib":
        return "mono", (6, 8)
    major = core.version[0]
    if major >= 5:
        return "coreclr", (major, core.version[1])
    if core.kind == "fragile":
        return "coreclr", (2, 1)
    native = core.native
    found = OLD_FORMATS.get(native.version) if isinstance(native, ReadyToRun) else None
    if found is None:
        what = "the core library does not tell which version of .NET it is of"
        raise DebugInfoError("FC0905", core.path, what)
    return "coreclr", found


def folders_of(path: str, named: tuple[str, ...] = (), mono: bool = False) -> tuple[str, ...]:
    """Folders to look for assemblies in: those ``named``, the image's own, its framework's.

    The framework is the one that the runtimeconfig.json beside the image names, or Mono's.
    """
    beside = os.path.dirname(path) or "."
    found = [*named, beside]
    if mono:
        return tuple(dict.fromkeys([*found, MONO]))
    if os.path.exists(os.path.join(beside, CORE_FILE)):
        return tuple(dict.fromkeys(found))  # a part of the framework, or a program with its own
    for name, version in _frameworks(path, beside):
        for root in _roots():
            folder = _newest(os.path.join(root, "shared", name), version)
            if folder:
                found.append(folder)
                break
    return tuple(dict.fromkeys(found))


def _roots() -> list[str]:
    stated = os.environ.get("DOTNET_ROOT")
    found = [stated] if stated else []
    try:
        with open(INSTALL_LOCATION, encoding="utf-8") as file:
            found.append(file.readline(4096).strip())
    except OSError:
        pass  # few have it
    return [*found, *ROOTS]


def _frameworks(path: str, beside: str) -> list[tuple[str, str]]:
    # Of app.dll in app.runtimeconfig.json; a library's is that of the one program beside it.
    import json

    own = f"{os.path.splitext(path)[0]}.runtimeconfig.json"
    if not os.path.exists(own):
        ending = ".runtimeconfig.json"
        try:
            listed = [name for name in os.listdir(beside) if name.endswith(ending)]
        except OSError:
            return []
        if len(listed) != 1:
            return []
        own = os.path.join(beside, listed[0])
    try:
        with open(own, encoding="utf-8-sig") as file:
            options = json.loads(file.read(LARGEST_CONFIG))["runtimeOptions"]
        if "includedFrameworks" in options:
            return []  # the program brings its own, which is beside it
        named = options.get("frameworks") or [options["framework"]]
        return [(str(one["name"]), str(one["version"])) for one in named]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DebugInfoError("FC0904", own, "it names no framework and version") from None


def _newest(folder: str, version: str) -> str:
    # The newest patch of the same release, as the host takes it.
    try:
        names = os.listdir(folder)
    except OSError:
        return ""
    release = version.split(".")[:2]
    fitting = [name for name in names if name.split(".")[:2] == release and _patch(name) >= 0]
    return os.path.join(folder, max(fitting, key=_patch)) if fitting else ""


def _patch(version: str) -> int:
    digits = version.split(".")[2].partition("-")[0] if version.count(".") >= 2 else ""
    return int(digits) if digits.isdecimal() and len(digits) < 6 else -1
