"""Which runtime an image is for, and the folders that hold the assemblies it refers to."""

from __future__ import annotations

import os
from contextlib import suppress

from fetchc.debuginfo.dotnet.image.ready_to_run import ReadyToRun
from fetchc.debuginfo.safe_open import exists, is_regular, listed, read_regular, resolved
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly

__all__ = ["Process", "folders_of", "version_of"]

# Where packages install .NET, beside DOTNET_ROOT. Source: dotnet/designs, install-locations.md.
ROOTS = ("/usr/share/dotnet", "/usr/lib/dotnet", "/usr/lib64/dotnet")
MONO = "/usr/lib/mono/4.5"  # of Debian's packages, and of mono-project.com's
INSTALL_LOCATION = "/etc/dotnet/install_location"
# Versions of the ReadyToRun format, of core libraries whose own version is 4.0.0.0.
OLD_FORMATS = {(3, 1): (3, 1), (3, 0): (3, 0)}
CORE_FILE, MONO_CORE_FILE = "System.Private.CoreLib.dll", "mscorlib.dll"
CONFIG = ".runtimeconfig.json"
LARGEST_CONFIG = 1 << 20
LARGEST_MAPS = 1 << 26
MOST_VERSIONS = 4096  # of a framework, installed side by side


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


class Process(Record):
    """The process that runs a program: its folder (``/proc/42``), and its root directory as seen
    from here, empty where it is the own one.
    """

    folder: str
    root: str = ""


def folders_of(
    path: str, named: tuple[str, ...] = (), mono: bool = False, process: Process | None = None
) -> tuple[str, ...]:
    """Folders to look for assemblies in: those ``named``, the image's own, its framework's.

    The framework is what the ``process`` has mapped. What is not mapped, and all where there is no
    process: the one that the runtimeconfig.json beside the image names, or Mono's. It is installed
    in the dotnet root that the image itself is in, or where the process, or this one, finds it.
    """
    beside = os.path.dirname(path) or "."
    found = [*named, beside]
    if not mono and exists(os.path.join(beside, CORE_FILE)):
        return tuple(dict.fromkeys(found))  # a part of the framework, or a program with its own
    if process is not None:
        found += _mapped(process, MONO_CORE_FILE if mono else CORE_FILE)
    root = "" if process is None else process.root
    if mono:
        return tuple(dict.fromkeys([*found, resolved(root, MONO)]))
    home = _dotnet_root(beside)
    roots = [home] if home else []
    roots += [resolved(root, one) for one in _roots(process)]
    sdk = _sdk(beside, home)
    if sdk:
        found.append(sdk)
    for name, version in _frameworks(path, beside, sdk):
        for one in roots:
            folder = _newest(os.path.join(one, "shared", name), version)
            if folder:
                found.append(folder)
                break
    return tuple(dict.fromkeys(found))


def _mapped(process: Process, core: str) -> list[str]:
    # The folders of the assemblies that a process has mapped, that of its core library first.
    # Source: proc(5), /proc/pid/maps: the path is the last of six words.
    text = os.fsdecode(_of_process(process, "maps"))
    lines = [line.split(None, 5) for line in text.split("\n")]
    paths = {words[5]: None for words in lines if len(words) == 6 and words[5].endswith(".dll")}
    folders = []
    for path in sorted(paths, key=lambda path: os.path.basename(path) != core):
        of_here = path.startswith(process.root + "/")  # as of a chroot
        seen = path if of_here else resolved(process.root, path)
        if is_regular(seen):
            folders.append(os.path.dirname(seen))
    return folders


def _dotnet_root(beside: str) -> str:
    # The dotnet root that a folder is in: an SDK's, or that of a framework beside others.
    folder = os.path.abspath(beside)
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        if exists(os.path.join(folder, "shared", "Microsoft.NETCore.App")):
            return folder
    return ""


def _roots(process: Process | None) -> list[str]:
    # In the order in which a host looks: what DOTNET_ROOT says, what is registered, packages' own.
    stated, root = os.environ.get("DOTNET_ROOT"), ""
    if process is not None:
        stated, root = _environment(process).get("DOTNET_ROOT"), process.root
    found = [stated] if stated else []
    with suppress(OSError):  # few have it
        text = read_regular(resolved(root, INSTALL_LOCATION), 4096)
        found.append(os.fsdecode(text.split(b"\n")[0].strip()))
    return [*found, *ROOTS]


def _environment(process: Process) -> dict[str, str]:
    # As it was when the process started.
    pairs = [one.partition("=") for one in os.fsdecode(_of_process(process, "environ")).split("\0")]
    return {name: value for name, _, value in pairs}


def _of_process(process: Process, file: str) -> bytes:
    # Nothing of a process that has ended meanwhile.
    try:
        return read_regular(f"{process.folder}/{file}", LARGEST_MAPS)
    except OSError:
        return b""


def _sdk(beside: str, home: str) -> str:
    # The folder of the SDK that a folder is in.
    inside = os.path.relpath(beside, home).split(os.sep) if home else []
    return os.path.join(home, *inside[:2]) if inside[:1] == ["sdk"] and inside[1:] else ""


def _frameworks(path: str, beside: str, sdk: str) -> list[tuple[str, str]]:
    # Of app.dll in app.runtimeconfig.json; a library's is that of the one program beside it; what
    # is in an SDK runs on what the SDK's own program does.
    import json

    own = f"{os.path.splitext(path)[0]}{CONFIG}"
    if not exists(own) and sdk:
        own = os.path.join(sdk, f"dotnet{CONFIG}")
    if not exists(own):
        try:
            names = listed(beside, 2, CONFIG)
        except OSError:
            return []
        if len(names) != 1:
            return []
        own = os.path.join(beside, names[0])
    try:
        text = read_regular(own, LARGEST_CONFIG).decode("utf-8-sig")
        options = json.loads(text)["runtimeOptions"]
        if "includedFrameworks" in options:
            return []  # the program brings its own, which is beside it
        named = options.get("frameworks") or [options["framework"]]
        return [(str(one["name"]), str(one["version"])) for one in named]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DebugInfoError("FC0904", own, "it names no framework and version") from None


def _newest(folder: str, version: str) -> str:
    # The newest patch of the same release, as the host takes it.
    try:
        names = listed(folder, MOST_VERSIONS)
    except OSError:
        return ""
    release = version.split(".")[:2]
    fitting = [name for name in names if name.split(".")[:2] == release and _patch(name) >= 0]
    return os.path.join(folder, max(fitting, key=_patch)) if fitting else ""


def _patch(version: str) -> int:
    digits = version.split(".")[2].partition("-")[0] if version.count(".") >= 2 else ""
    return int(digits) if digits.isdecimal() and len(digits) < 6 else -1
