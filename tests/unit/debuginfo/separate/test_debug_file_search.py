"""Debug files in their places, of the right build and of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.elf.headers import Image
from fetchc.debuginfo.separate.debug_file_search import Search
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.debug_files import (
    OTHER,
    OWN,
    THIRD,
    by_build_id,
    debug_file,
    info_of,
    link,
    note,
)
from tests.support.elfwriter import Sym, elf_file


def program(path: Path, build_id: bytes | None = OWN, **sections: bytes) -> Elf:
    """A stripped program ``path/program``, its search in ``path/root`` alone."""
    named = {f".{name}": content for name, content in sections.items()}
    if build_id is not None:
        named[".note.gnu.build-id"] = note(build_id)
    (path / "program").write_bytes(elf_file(named or {".text": b"\xc3"}))
    return Elf(str(path / "program"), Search(roots=(str(path / "root"),)))


def test_a_debug_file_of_another_build_is_refused(tmp_path: Path) -> None:
    debug_file(by_build_id(tmp_path / "root"), OTHER)
    elf = program(tmp_path)
    assert elf.build_id() == OWN.hex()
    with pytest.raises(DebugInfoError, match=f"another build: build-id {OTHER.hex()}") as raised:
        elf.open_section(".debug_info")
    assert raised.value.code == "FC0908"


def test_a_linked_file_with_another_checksum_is_refused(tmp_path: Path) -> None:
    written = debug_file(tmp_path / "p.debug")
    assert info_of(program(tmp_path, None, gnu_debuglink=link("p.debug", written))) == b"info"
    with pytest.raises(DebugInfoError, match=r"its checksum is [0-9a-f]{8}, not [0-9a-f]{8}"):
        info_of(program(tmp_path, None, gnu_debuglink=link("p.debug", written[1:])))
    with pytest.raises(DebugInfoError, match=r"'\.\./evil' is no name of a file"):
        info_of(program(tmp_path, None, gnu_debuglink=link("../evil", b"")))


def test_the_alternate_file_is_found_by_name_and_by_build_id(tmp_path: Path) -> None:
    def found(owner: bytes) -> bytes:
        elf = program(tmp_path, gnu_debugaltlink=b"./common\0" + owner)
        section = elf.finder.alternate(elf.debug_image).open_section(".debug_info")
        assert section is not None
        return bytes(section.upto())

    debug_file(tmp_path / "common", OTHER, b"by name")
    assert found(OTHER) == b"by name"
    debug_file(by_build_id(tmp_path / "root", THIRD), THIRD, b"by build-id")
    assert found(THIRD) == b"by build-id"  # the one with the name is of another build
    with pytest.raises(DebugInfoError, match="is of another build") as raised:
        found(b"\x01\x02\x03")
    assert raised.value.code == "FC0908"


def test_an_alternate_file_that_is_nowhere_is_reported_with_all_places(tmp_path: Path) -> None:
    elf = program(tmp_path, gnu_debugaltlink=b"/no/common\0" + OTHER)
    with pytest.raises(DebugInfoError, match="the alternate debug file /no/common ") as raised:
        elf.finder.alternate(elf.debug_image)
    assert raised.value.code == "FC0909"
    tried = [f"/no/common; {by_build_id(tmp_path / 'root', OTHER)}", f"{tmp_path}/root/.dwz/common"]
    assert raised.value.notes == (f"tried {'; '.join(tried)}",)
    with pytest.raises(DebugInfoError, match=r"\.gnu_debugaltlink: missing"):
        elf.finder.alternate(Image(str(debug_file_path(tmp_path))))


def debug_file_path(folder: Path) -> Path:
    debug_file(folder / "plain")
    return folder / "plain"


def test_split_files_and_their_package(tmp_path: Path) -> None:
    elf = program(tmp_path)
    assert elf.finder.package(elf.debug_image) is None
    debug_file(tmp_path / "build/a.dwo", OWN, b"in the folder of the build")
    debug_file(tmp_path / "a.dwo", OTHER, b"beside the program")

    def not_ours(image: Image) -> str:
        return "" if image.build_id() == OTHER.hex() else "another dwo_id"

    found = elf.finder.split("a.dwo", str(tmp_path / "build"), lambda image: "")
    assert found.path == str(tmp_path / "build/a.dwo")
    assert elf.finder.split("a.dwo", str(tmp_path / "build"), not_ours).path.endswith("/a.dwo")
    assert elf.finder.split("out/a.dwo", "/gone", not_ours).path == str(tmp_path / "a.dwo")
    with pytest.raises(DebugInfoError, match=r"split debug file b\.dwo is not found") as raised:
        elf.finder.split("b.dwo", "/gone", not_ours)
    assert raised.value.code == "FC0909"
    assert raised.value.notes == (f"tried /gone/b.dwo; {tmp_path}/b.dwo",)
    debug_file(tmp_path / "program.dwp")
    package = elf.finder.package(elf.debug_image)
    assert package is not None
    assert package.path == str(tmp_path / "program.dwp")


def test_a_folder_may_have_an_unpacked_package(tmp_path: Path) -> None:
    debug_file(by_build_id(tmp_path / "unpacked/usr/lib/debug"))
    program(tmp_path)
    search = Search(None, (str(tmp_path / "unpacked"),), ())
    assert info_of(Elf(str(tmp_path / "program"), search)) == b"info"


def test_a_stale_file_is_passed_over_where_the_right_one_is_elsewhere(tmp_path: Path) -> None:
    debug_file(by_build_id(tmp_path / "first"), OTHER)
    debug_file(by_build_id(tmp_path / "second"), OWN, b"right")
    program(tmp_path)
    dirs = (str(tmp_path / "first"), str(tmp_path / "second"))
    assert info_of(Elf(str(tmp_path / "program"), Search(None, dirs, ()))) == b"right"
    with pytest.raises(DebugInfoError, match="another build") as refused:
        info_of(Elf(str(tmp_path / "program"), Search(None, (*dirs[:1], "/none"), ())))
    (note_of_places,) = refused.value.notes
    assert f"/none/.build-id/ab/{OWN.hex()[2:]}.debug" in note_of_places
    assert f"(build-id {OTHER.hex()}, not {OWN.hex()})" in note_of_places


def test_a_file_with_nothing_in_it_is_passed_over(tmp_path: Path) -> None:
    place = by_build_id(tmp_path / "root")
    debug_file(place)
    place.write_bytes(elf_file({".note.gnu.build-id": note(OWN)}))
    elf = program(tmp_path)
    assert info_of(elf) is None
    assert elf.finder.tried[0] == f"{place} (neither debug information nor symbols in it)"
    place.write_bytes(elf_file({".note.gnu.build-id": note(OWN)}, symbols=[Sym("f", 0x1000)]))
    assert len(program(tmp_path).symbols_named("f")) == 1


def test_a_file_that_is_named_is_the_only_one(tmp_path: Path) -> None:
    debug_file(by_build_id(tmp_path / "root"))
    debug_file(tmp_path / "named", OWN, b"named")
    program(tmp_path, debug_info=b"its own")
    search = Search(str(tmp_path / "named"), (), (str(tmp_path / "root"),))
    assert info_of(Elf(str(tmp_path / "program"), search)) == b"named"


def test_without_build_id_and_checksum_the_sections_tell(tmp_path: Path) -> None:
    def written(name: str, address: int, **sections: bytes) -> None:
        named = {".text": b"\xc3"} | {f".{key}": content for key, content in sections.items()}
        places = {".text": address}
        content = elf_file(named, flags={".text": 2}, addresses=places)
        (tmp_path / name).write_bytes(content)

    search = Search(None, (str(tmp_path),), ())
    written("program", 0x1000)
    written("program.debug", 0x1000, debug_info=b"info")
    assert info_of(Elf(str(tmp_path / "program"), search)) == b"info"
    written("program.debug", 0x2000, debug_info=b"info")
    with pytest.raises(DebugInfoError, match=r"\.text is not where the program has it"):
        info_of(Elf(str(tmp_path / "program"), search))
    (tmp_path / "program").write_bytes(elf_file({"bare": b""}))
    with pytest.raises(DebugInfoError, match="no section says that it is of this one"):
        info_of(Elf(str(tmp_path / "program"), search))
    program(tmp_path)  # it has a build-id, and the file has none
    with pytest.raises(DebugInfoError, match=f"build-id missing, not {OWN.hex()}"):
        info_of(Elf(str(tmp_path / "program"), search))


def test_a_file_for_another_machine_is_reported_as_such(tmp_path: Path) -> None:
    sections = {".note.gnu.build-id": note(OWN), ".debug_info": b"info"}
    (tmp_path / "other").write_bytes(elf_file(sections, machine=22, little=False))
    program(tmp_path)
    search = Search(str(tmp_path / "other"))
    with pytest.raises(
        DebugInfoError, match=r"for machine 22 \(64 bits, big-endian\), not"
    ) as refused:
        info_of(Elf(str(tmp_path / "program"), search))
    assert refused.value.code == "FC0908"


def test_a_program_is_not_its_own_debug_file(tmp_path: Path) -> None:
    elf = program(tmp_path, None, gnu_debuglink=link("program", b""))
    assert info_of(elf) is None
    assert str(tmp_path / "program") not in elf.finder.tried


def test_files_of_a_container_are_in_its_own_root(tmp_path: Path) -> None:
    root = tmp_path / "container"
    (root / "opt").mkdir(parents=True)
    (root / "debug").symlink_to("/usr/lib/debug")
    written = debug_file(root / "usr/lib/debug/opt/p.debug", OWN, b"inside")
    program(root / "opt", None, gnu_debuglink=link("p.debug", written))
    search = Search(None, (), ("/debug",), str(root))
    elf = Elf(str(root / "opt/program"), search)
    assert info_of(elf) == b"inside"
    (root / "usr/lib/debug/opt/p.debug").unlink()
    elf = Elf(str(root / "opt/program"), search)
    assert info_of(elf) is None
    assert elf.finder.tried == (
        f"{root}/opt/p.debug", f"{root}/opt/.debug/p.debug", f"{root}/usr/lib/debug/opt/p.debug",
    )  # fmt: skip


def test_a_tree_of_the_host_has_files_of_containers(tmp_path: Path) -> None:
    root, host = tmp_path / "container", tmp_path / "host"
    (root / "opt").mkdir(parents=True)
    program(root / "opt")
    search = Search(None, (), (str(host),), str(root))
    debug_file(by_build_id(host), OWN, b"outside")
    assert info_of(Elf(str(root / "opt/program"), search)) == b"outside"
    debug_file(by_build_id(root / str(host)[1:]), OWN, b"inside")  # its own come first
    assert info_of(Elf(str(root / "opt/program"), search)) == b"inside"


def test_the_package_that_a_program_is_of_is_named(tmp_path: Path) -> None:
    lists = tmp_path / "container/var/lib/dpkg/info"
    lists.mkdir(parents=True)
    (lists / "other.list").write_text("/.\n/usr/bin/program.1\n")
    (lists / "tools:amd64.list").write_text("/.\n/bin/program\n")
    root = tmp_path / "container"
    (root / "usr/bin").mkdir(parents=True)
    program(root / "usr/bin")
    elf = Elf(str(root / "usr/bin/program"), Search(None, (), (), str(root)))
    assert info_of(elf) is None
    notes, help = elf.finder.advice()
    assert notes == ()
    assert "in its container (`apt-get install tools-dbgsym`, or `tools-dbg`)" in help
    assert elf.finder.advice() is elf.finder.advice()
