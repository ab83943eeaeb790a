"""Files that a stranger names: beside a binary, in its debug information, in its process.

A FIFO waits for ever, a device acts when it is opened, a link leads out of a container, a sparse
file has more bytes than there is memory. Each question ends in time, with a located error or
without the file.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fetchc.ceilings import holes
from fetchc.debuginfo.safe_open import (
    exists,
    is_regular,
    listed,
    open_regular,
    read_regular,
    resolved,
)
from fetchc.debuginfo.separate.debug_file_search import advice
from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.perf_maps import Process, merge, own_lines
from tests.support.cases import CORPUS
from tests.support.container import contained
from tests.support.programs import fixture
from tests.support.special_files import KINDS, special

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="another root directory needs root")
STRIPPED = "/bin/sleep"
PROGRAM = "/bin/program"  # in the container
SAMPLE = CORPUS / "dotnet/echo/bin/sample.dll"


def fetchc(*words: str, megabytes: int = 1024) -> subprocess.CompletedProcess[str]:
    """A command with a ceiling of time and memory."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({megabytes} << 20,) * 2)"
    code = f"{limit}\nimport sys\nfrom fetchc.cli import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True, text=True, timeout=20, check=False, errors="replace",
    )  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files of a container, with a stripped program and Debian's folder of packages."""
    packages = tmp_path / "var/lib/dpkg/info"
    packages.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "proc").mkdir()
    shutil.copy(STRIPPED, tmp_path / "bin/program")
    (packages / "zz-right.list").write_text("/.\n/bin\n/bin/program\n")
    return tmp_path


@ROOT_ONLY
def test_packages_of_a_container(tree: Path) -> None:
    for kind in KINDS:
        special(tree / f"var/lib/dpkg/info/aa-{kind}.list", kind)
    with contained(tree) as pid:
        done = fetchc("compile", "x", "-x", f"/proc/{pid}/root" + PROGRAM, "-f", "main")
    assert done.returncode in (1, 3), done.stderr
    assert "`apt-get install zz-right-dbgsym`" in done.stderr


@ROOT_ONLY
def test_packages_of_a_container_do_not_tell_of_the_host(tree: Path, tmp_path: Path) -> None:
    host = tmp_path.parent / f"{tmp_path.name}-host"
    host.mkdir()
    (host / "secret.list").write_text("/bin/program\n")
    packages = tree / "var/lib/dpkg/info"
    shutil.rmtree(packages)
    packages.symlink_to(host)
    with contained(tree) as pid:
        root = f"/proc/{pid}/root"
        (tree / "link").symlink_to(host / "secret.list")
        assert not exists(f"{root}/link")
        assert not is_regular(f"{root}/{packages.relative_to(tree)}/secret.list")
        assert "secret" not in advice(root, root + PROGRAM, ())[1]


@ROOT_ONLY
@pytest.mark.parametrize("name", ["x; reboot #", "x`id`", "-rf", "\x1b[2J"])
def test_a_package_is_only_named_by_what_is_a_name(tree: Path, name: str) -> None:
    (tree / f"var/lib/dpkg/info/{name}.list").write_text("/bin/program\n")
    (tree / "var/lib/dpkg/info/zz-right.list").unlink()
    with contained(tree) as pid:
        root = f"/proc/{pid}/root"
        assert "apt-get" not in advice(root, root + PROGRAM, ())[1]


def test_a_walk_does_not_lead_out(tmp_path: Path) -> None:
    inside, outside = tmp_path / "root", tmp_path / "outside"
    inside.mkdir()
    outside.write_text("secret")
    (inside / "outside").write_text("own")
    (inside / "absolute").symlink_to("/outside")
    (inside / "up").symlink_to("../../../outside")
    (inside / "through").symlink_to("/proc/self/root/outside")
    (inside / "magic").symlink_to("/proc")
    (inside / "deep").symlink_to("/".join(["a/.."] * 800))
    root = str(inside)
    for name in ("absolute", "up", "outside", "../outside", "./../..//outside"):
        assert read_regular(f"{root}/{name}", 100, root) == b"own"
    for name in ("through", "magic/self/exe", "deep/x", "nothing"):
        assert not exists(f"{root}/{name}", root)
        with pytest.raises(OSError, match=r"\[Errno 2\]"):
            read_regular(f"{root}/{name}", 100, root)
    assert resolved(root, "/up") == f"{root}/outside"
    assert read_regular(f"/proc/self/root{outside}", 100) == b"secret"
    with pytest.raises(OSError, match="more than 5 bytes"):
        read_regular(str(outside), 5)


def test_a_link_that_is_swapped_meanwhile_does_not_lead_out(tmp_path: Path) -> None:
    # As fast as another process can: now a folder with a file, now a link to the outside.
    inside = tmp_path / "root"
    (inside / "real").mkdir(parents=True)
    (inside / "real/file").write_text("own")
    (tmp_path / "file").write_text("secret")
    swap = (
        "import os, sys\nos.chdir(sys.argv[1])\nprint(flush=True)\n"
        "while True:\n"
        "    os.symlink(sys.argv[2], 'new'); os.rename('new', 'swapped')\n"
        "    os.symlink('real', 'new'); os.rename('new', 'swapped')\n"
    )
    command = [sys.executable, "-c", swap, str(inside), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapping:
        try:
            assert swapping.stdout is not None
            swapping.stdout.readline()
            seen: set[bytes] = set()
            tries = 0
            # As often as it takes to meet both: how often depends on the scheduler.
            while tries < 3000 or (len(seen) < 2 and tries < 1_000_000):
                tries += 1
                try:
                    seen.add(read_regular(f"{inside}/swapped/file", 100, str(inside)))
                except FileNotFoundError:
                    seen.add(b"")
        finally:
            swapping.kill()
    assert seen == {b"own", b""}


@pytest.mark.parametrize("kind", ["fifo", "zero", "device", "folder", "loop"])
def test_only_regular_files_are_opened(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "device" and os.geteuid():
        pytest.skip("making a device needs root")
    path = tmp_path / "one"
    special(path, kind)
    opened: list[object] = []
    real = os.open

    def spy(name: str, flags: int, *more: int, **other: int) -> int:
        if not flags & os.O_PATH:
            opened.append(name)
        return real(name, flags, *more, **other)

    monkeypatch.setattr("fetchc.debuginfo.safe_open.os.open", spy)
    with pytest.raises(OSError):  # noqa: PT011 - which one is the kernel's to say
        open_regular(str(path))
    assert not is_regular(str(path))
    assert opened == []  # it was looked at alone


def test_a_folder_of_many_names_is_read_in_part(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"{number}.list").touch()
        (tmp_path / f"{number}.other").touch()
    assert len(listed(str(tmp_path), 10, ".list")) == 10
    assert len(listed(str(tmp_path), 100, ".list")) == 50


@pytest.mark.parametrize("kind", ["fifo", "zero", "sparse"])
def test_files_beside_an_image(tmp_path: Path, kind: str) -> None:
    shutil.copy(SAMPLE, tmp_path / "sample.dll")
    for name in ("sample.runtimeconfig.json", "System.Runtime.dll", "mscorlib.dll", "sample.pdb"):
        special(tmp_path / name, kind)
        done = fetchc("compile", "this", "-x", str(tmp_path / "sample.dll"), "-f", "*EchoValue")
        assert done.returncode in (0, 1, 3), done.stderr
        assert "Traceback" not in done.stderr
        if (tmp_path / name).is_symlink() or (tmp_path / name).exists():
            (tmp_path / name).unlink()


@pytest.mark.parametrize("kind", ["fifo", "zero", "sparse", "memory", "folder"])
def test_the_file_itself(tmp_path: Path, kind: str) -> None:
    special(tmp_path / "one", kind)
    done = fetchc("compile", "x", "-f", "main", "-x", str(tmp_path / "one"), megabytes=16 << 10)
    assert (done.returncode, done.stdout) == (3, "")
    assert "Traceback" not in done.stderr


# Perf maps.


@pytest.mark.parametrize(
    "name", ["/../../victim", "x/../../../victim", "/", "a/b", "..", "/../victim/", "n" * 249]
)
def test_the_name_of_a_file_in_memory_leads_nowhere(tmp_path: Path, name: str) -> None:
    # An image in there: what is written would be symbols of the attacker's choice.
    folder = tmp_path / "maps"
    folder.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("root's own")
    (tmp_path / "victim (deleted)").symlink_to(victim)  # what the kernel calls it in the end
    memory = os.memfd_create("plain")
    os.close(memory)
    libc = ctypes.CDLL(None)
    memory = libc.memfd_create(name.encode(), 0)
    assert memory >= 0
    try:
        os.write(memory, b"\x90" * 4096)
        kind = mmap.PROT_READ | mmap.PROT_EXEC
        with (
            mmap.mmap(memory, 4096, prot=kind, flags=mmap.MAP_SHARED),
            SAMPLE.open("rb") as file,
            mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=kind),
            (folder / f"perf-{os.getpid()}.map").open("w") as own,
        ):
            process = Process(os.getpid())
            (start,) = [one.start for one in process.mappings if one.path.startswith("/memfd:")]
            own.write(f"{start:x} 10 forged\n")
            own.flush()
            merged = merge(process, str(folder))
    finally:
        os.close(memory)
    assert victim.read_text() == "root's own"
    assert sorted(os.listdir(folder)) == [f"perf-{os.getpid()}.{end}" for end in ("map", "symbols")]
    assert sorted(os.listdir(tmp_path)) == ["maps", "victim", "victim (deleted)"]
    assert [one for one in merged.left_out if one.startswith("/memfd:")] or name == ".."


def test_the_name_of_a_runtime_s_file_in_memory_has_its_symbols(tmp_path: Path) -> None:
    memory = os.memfd_create("doublemapper")
    try:
        os.write(memory, b"\x90" * 4096)
        kind = mmap.PROT_READ | mmap.PROT_EXEC
        with (
            mmap.mmap(memory, 4096, prot=kind, flags=mmap.MAP_SHARED),
            SAMPLE.open("rb") as file,
            mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=kind),
        ):
            merged = merge(Process(os.getpid()), str(tmp_path))
    finally:
        os.close(memory)
    assert merged.left_out == ()
    assert (Path(merged.symbols) / "memfd:doublemapper (deleted)").is_file()


def test_a_link_that_the_process_made_is_not_written_through(tmp_path: Path) -> None:
    from fetchc.tracer.perf_maps import _replace_tree

    victim = tmp_path / "victim"
    victim.mkdir()
    path = str(tmp_path / "symbols")
    names = {str(victim): None, f"{victim}/image.dll": b"forged"}
    assert _replace_tree(path, names) == [f"{victim}/image.dll"]
    assert os.listdir(victim) == []


@pytest.mark.parametrize("kind", ["fifo", "zero", "sparse"])
def test_a_deleted_mapping_and_what_is_at_its_path_now(tmp_path: Path, kind: str) -> None:
    image = tmp_path / "image.dll"
    shutil.copy(SAMPLE, image)
    with image.open("rb") as file:
        mode = mmap.PROT_READ | mmap.PROT_EXEC
        mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mode)
    image.unlink()
    special(image, kind)
    done = fetchc("perfmap", "find", "0x1", "-p", str(os.getpid()))
    mapped.close()
    assert (done.returncode, "FC0206" in done.stderr) == (1, True), done.stderr


def test_a_map_of_eight_gigabytes_is_refused(tmp_path: Path) -> None:
    process = Process(os.getpid())
    path = tmp_path / f"perf-{process.pid}.map"
    special(path, "sparse")
    with path.open("a"), pytest.raises(TracerError, match=r"FC0715: .* more than 268,435,456"):
        own_lines(process, str(path))
    with pytest.raises(TracerError, match=r"FC0715: .* more than 268,435,456"):
        own_lines(process, str(path))


# Split debug files.


@pytest.mark.parametrize("kind", ["fifo", "zero", "device", "sparse"])
def test_the_file_that_a_split_unit_names(tmp_path: Path, kind: str) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc: .ci/setup installs it")
    if kind == "device" and os.geteuid():
        pytest.skip("making a device needs root")
    (tmp_path / "a.c").write_text("int f(int x) { return x; } int main(void) { return f(1); }\n")
    command = ["gcc", "-g", "-gsplit-dwarf", "-O0", "-o", "a", "a.c"]
    subprocess.run(command, check=True, cwd=tmp_path)
    for dwo in tmp_path.glob("*.dwo"):
        dwo.unlink()
        special(dwo, kind)
    done = fetchc("compile", "x", "-x", str(tmp_path / "a"), "-f", "f", megabytes=16 << 10)
    assert done.returncode == 3
    assert "FC0909" in done.stderr, done.stderr


@pytest.mark.parametrize("kind", ["stripped", "image"])
def test_a_program_with_a_hole_of_a_terabyte_is_refused(tmp_path: Path, kind: str) -> None:
    # One call searches all of it for the manifest of a bundle: no timer of Python ends that.
    path = tmp_path / "program"
    shutil.copy(SAMPLE if kind == "image" else STRIPPED, path)
    assert holes(path.stat()) == ""
    try:
        os.truncate(path, 1 << 40)
    except OSError:
        pytest.skip("the file system takes no file of a terabyte")
    done = fetchc("functions", "x", "-x", str(path), megabytes=1 << 22)
    assert done.returncode == 3, done.stderr
    assert "FC0905" in done.stderr


def test_a_file_is_read_that_has_some_holes(tmp_path: Path) -> None:
    path = tmp_path / "program"
    with path.open("wb") as file:
        file.write(b"x" * (1 << 20))
    for size, refused in ((1 << 20, False), (1 << 28, False), ((1 << 28) + 1, True)):
        os.truncate(path, size)
        assert bool(holes(path.stat())) == refused


def test_the_harness_has_a_program() -> None:
    assert fetchc("functions", "-x", str(fixture("c/layouts/gcc-O2-dwarf5"))).returncode == 0


def test_a_module_of_the_kernel_is_a_name(tmp_path: Path) -> None:
    special(tmp_path / "one", "fifo")
    for name in (f"../../..{tmp_path}/one", "../../../dev/zero", "../vmcoreinfo"):
        done = fetchc("functions", "-x", f"kernel:{name}")
        assert (done.returncode, done.stdout) == (3, "")
        assert "FC090" in done.stderr
