"""Newer releases of the peers than this machine's suite has, unpacked and not installed.

They are of Debian's next stable suite and its backports, with every library that they need, and run
by the loader of their own C library. apt gets sources and lists of its own, verified with Debian's
keyring; the machine's stay as they are. pahole is left out: release 1.30 prints what it is
asked for and ends with status 1.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.benchmark.fetched import FOLDER, Unavailable, kept, run
from tests.benchmark.subjects import NEWER

__all__ = ["PEERS", "newer", "versions"]

_SUITE = "trixie"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_WHERE = FOLDER / "newer"


@dataclass(frozen=True)
class _Peer:
    """``package`` brings ``bin/NAME``; ``options`` tell it where it is."""

    package: str
    options: tuple[str, ...] = ()
    python: bool = False  # has one inside, which looks for its library


PEERS = {
    "perf": _Peer("linux-perf"),
    "gdb": _Peer("gdb", ("--data-directory", "{root}/usr/share/gdb"), python=True),
    "bpftrace": _Peer("bpftrace"),
}


def newer(tool: str) -> list[str]:
    """The words that a command line of the newer release begins with.

    Raises Unavailable where it cannot be had.
    """
    peer = PEERS[tool]
    program = kept(f"newer/{tool}/usr/bin/{tool}", 3, lambda scratch: _unpacked(peer, scratch))
    root = program.parents[2]
    libraries = [path.parent for path in root.glob("usr/lib/*/libc.so.6")]
    loaders = [path for folder in libraries for path in folder.glob("ld-linux*.so.*")]
    if len(loaders) != 1:
        raise Unavailable(f"{root} has {len(loaders)} loaders")
    environment = ["env", f"PYTHONHOME={root}/usr"] if peer.python else []
    loader = [str(loaders[0]), "--library-path", str(libraries[0]), "--argv0", tool]
    options = [option.format(root=root) for option in peer.options]
    return [*environment, *loader, str(program), *options]


def versions(newer: dict[str, list[str]]) -> dict[str, str]:
    """What the peers call their releases: the installed ones, and those of :func:`newer`."""
    asked = {tool: [tool] for tool in ("perf", "gdb", "bpftrace", "pahole") if shutil.which(tool)}
    asked |= {tool + NEWER: words for tool, words in newer.items()}
    found = {}
    for tool, words in asked.items():
        printed = subprocess.run([*words, "--version"], capture_output=True, text=True, check=True)
        number = re.search(r"[0-9]+\.[0-9.]*[0-9]", printed.stdout.splitlines()[0].split(")")[-1])
        found[tool] = number[0] if number else "?"
    return found


def _unpacked(peer: _Peer, scratch: Path) -> Path:
    # apt is blind to what is installed, so that it fetches all libraries, that of C as well.
    archives, root = scratch / "archives", scratch / "root"
    (archives / "partial").mkdir(parents=True)
    root.mkdir()
    words = ["-qq", "-y", "--no-install-recommends", "--download-only", "-t", f"{_SUITE}-backports"]
    run([*_apt(), *words, "-o", f"Dir::Cache::archives={archives}", "install", peer.package], root)
    for archive in archives.glob("*.deb"):
        run(["dpkg-deb", "-x", archive, root], root)
    return root


def _apt() -> list[str | Path]:
    for tool in ("apt-get", "dpkg-deb", _KEYRING):
        if shutil.which(tool) is None and not Path(tool).exists():
            raise Unavailable(f"no {tool} here")
    where = _WHERE / "apt"
    own: list[str | Path] = ["apt-get"]
    for option in (
        f"Dir::Etc::sourcelist={where}/sources.list",
        "Dir::Etc::sourceparts=/dev/null",
        f"Dir::State::lists={where}/lists",
        f"Dir::Cache={where}/cache",
        "Dir::State::status=/dev/null",
        "APT::Sandbox::User=root",
        "Acquire::Languages=none",
        "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false",
    ):
        own += ["-o", option]
    for folder in ("lists/partial", "cache/archives/partial"):
        (where / folder).mkdir(parents=True, exist_ok=True)
    (where / "sources.list").write_text(
        "".join(
            f"deb [signed-by={_KEYRING} check-valid-until=no] {_mirror()} {suite} main\n"
            for suite in (_SUITE, f"{_SUITE}-backports")
        )
    )
    run([*own, "-qq", "update"], where)
    return own


def _mirror() -> str:
    # The one that the machine's own sources name.
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN)"]
    printed = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    for line in printed.splitlines():
        address, _, origin = line.partition(" ")
        if origin == "Debian" and "security" not in address:
            return address
    raise Unavailable("no mirror of Debian in this machine's sources")
