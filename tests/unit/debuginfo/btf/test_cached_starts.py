"""Where the running kernel's types begin is kept: the same answers, or as if nothing were."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.btf import kernel_program
from fetchc.debuginfo.btf.btf_format import Btf
from fetchc.debuginfo.environment import CacheFolder
from tests.support.btfwriter import BtfWriter

NOTE = b"\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0\xab\xcd\xef\0"


def data(*names: str) -> bytes:
    writer = BtfWriter()
    number = writer.integer("int", 4)
    for name in names:
        writer.struct(name, 4, ("member", number, 0))
    return writer.bytes()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CacheFolder:
    (tmp_path / "notes").write_bytes(b"\x04\0\0\0\x05\0\0\0\x09\0\0\0Xen\0hello\0\0\0" + NOTE)
    monkeypatch.setattr(kernel_program, "NOTES", str(tmp_path / "notes"))
    return CacheFolder(str(tmp_path / "cache"))


def walks(monkeypatch: pytest.MonkeyPatch) -> list[Btf]:
    made: list[Btf] = []
    plain = Btf._walk

    def counted(btf: Btf) -> object:
        made.append(btf)
        return plain(btf)

    monkeypatch.setattr(Btf, "_walk", counted)
    return made


def test_the_second_run_does_not_walk(cache: CacheFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    walked = walks(monkeypatch)
    content = data("a", "bb", "ccc")
    answers = [
        kernel_program.running_btf("kernel", content, cache).named("bb", ("STRUCT",))
        for _ in range(3)
    ]
    assert answers == [[3]] * 3
    assert len(walked) == 1
    (file,) = Path(cache.path).iterdir()
    assert file.name.startswith("abcdef-")
    assert file.suffix == ".btf"


def test_another_kernel_is_walked(cache: CacheFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel_program.running_btf("kernel", data("a"), cache)
    walked = walks(monkeypatch)
    assert kernel_program.running_btf("kernel", data("a", "b"), cache).named("b", ("STRUCT",)) == [
        3
    ]
    Path(kernel_program.NOTES).write_bytes(NOTE.replace(b"\xab", b"\xaa"))
    assert kernel_program.running_btf("kernel", data("a"), cache).named("a", ("STRUCT",)) == [2]
    assert len(walked) == 2


def test_a_damaged_file_is_not_used(cache: CacheFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    content = data("a", "b")
    kernel_program.running_btf("kernel", content, cache)
    (file,) = Path(cache.path).iterdir()
    damaged = bytearray(file.read_bytes())
    damaged[-1] ^= 1
    file.write_bytes(damaged)
    walked = walks(monkeypatch)
    for _ in range(2):
        assert kernel_program.running_btf("kernel", content, cache).named("b", ("STRUCT",)) == [3]
    assert len(walked) == 1


@pytest.mark.parametrize("notes", [b"", NOTE[:10], NOTE.replace(b"GNU", b"gnu")])
def test_a_kernel_without_build_id_is_not_kept(cache: CacheFolder, notes: bytes) -> None:
    Path(kernel_program.NOTES).write_bytes(notes)
    kernel_program.running_btf("kernel", data("a"), cache)
    assert not Path(cache.path).exists()


def test_a_library_caches_nothing(cache: CacheFolder) -> None:
    kernel_program.running_btf("kernel", data("a"), None)
    assert not Path(cache.path).exists()
