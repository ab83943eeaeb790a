"""Programs out of folders, archives and images; what archives cannot do."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from fetchc.answers.binary_sources import programs_in, sources

PROGRAM = b"\x7fELF" + bytes(60)


def archive(**members: bytes | str) -> bytes:
    """A tar archive; a string is the target of a link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as made:
        for name, content in members.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                made.addfile(member)
                continue
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def image(folder: Path, *layers: bytes) -> Path:
    """An OCI image layout of these layers."""
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(content: bytes) -> dict[str, object]:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    manifest = json.dumps({"layers": [blob(each) for each in layers]}).encode()
    index = {"manifests": [blob(manifest)]}
    (folder / "index.json").write_text(json.dumps(index))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return folder


def found(*paths: Path) -> tuple[list[tuple[str, bytes]], list[str]]:
    problems: list[str] = []
    listed = []
    for each in sources([str(path) for path in paths], problems):
        listed.append((each.label, Path(each.path).read_bytes()))
    return listed, problems


def test_a_folder_has_its_programs_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(PROGRAM)
    (tmp_path / "a").mkdir()
    (tmp_path / "a/c").write_bytes(PROGRAM + b"c")
    (tmp_path / "text").write_text("no program")
    (tmp_path / "link").symlink_to(tmp_path / "b")
    os.mkfifo(tmp_path / "fifo")
    listed, problems = found(tmp_path)
    assert [label for label, _ in listed] == [f"{tmp_path}/b", f"{tmp_path}/a/c"]
    assert not problems
    assert programs_in([str(tmp_path), str(tmp_path / "b"), str(tmp_path / "none")]) == 3
    assert programs_in([str(tmp_path), str(tmp_path / "text")]) is None


def test_an_archive_gives_copies_that_go_away(tmp_path: Path) -> None:
    path = tmp_path / "t.tgz"
    members = archive(
        bin__one=PROGRAM, text=b"no program", bin__two=PROGRAM + b"2", to="/etc/passwd"
    )
    path.write_bytes(gzip.compress(members))
    problems: list[str] = []
    copies = []
    for each in sources([str(path)], problems):
        assert os.path.exists(each.path)
        copies.append(each)
    assert [each.label for each in copies] == [f"{path}:bin/one", f"{path}:bin/two"]
    assert not any(os.path.exists(each.path) for each in copies)
    assert not problems


def test_an_image_has_the_programs_of_its_layers(tmp_path: Path) -> None:
    layers = gzip.compress(archive(one=PROGRAM)), archive(two=PROGRAM + b"2")
    listed, problems = found(image(tmp_path / "i", *layers))
    assert [content for _, content in listed] == [PROGRAM, PROGRAM + b"2"]
    assert not problems


def test_an_image_that_was_saved_to_an_archive_has_them_too(tmp_path: Path) -> None:
    # The layout as containerd's Docker saves it, and the folders that others write.
    zstandard = pytest.importorskip("zstandard", reason="pip install zstandard")
    packed = zstandard.compress(archive(two=PROGRAM + b"2"))
    blobs = image(tmp_path / "i", gzip.compress(archive(one=PROGRAM)), packed) / "blobs/sha256"
    saved = {f"blobs__sha256__{each.name}": each.read_bytes() for each in blobs.iterdir()}
    saved |= {f"{'0' * 64}__layer.tar": archive(three=PROGRAM + b"3", inner__layer=archive())}
    path = tmp_path / "saved.tar"
    path.write_bytes(archive(**saved))
    for packing in (bytes, gzip.compress, zstandard.compress):
        path.write_bytes(packing(archive(**saved)))
        listed, problems = found(path)
        assert sorted(content for _, content in listed) == [PROGRAM, PROGRAM + b"2", PROGRAM + b"3"]
        assert not problems
    path.write_bytes(packed[:30])
    assert found(path)[0] == []
    assert len(found(path)[1]) == 1


def test_where_there_is_no_program_a_line_says_so(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    (tmp_path / "t.tar").write_bytes(archive(text=b"no program"))
    for path in (tmp_path, tmp_path / "t.tar"):
        assert found(path) == ([], [f"{path}: there is no program in it"])


def test_names_and_digests_lead_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "t.tar"
    path.write_bytes(archive(**{"..__..__evil": PROGRAM, "__etc__evil": PROGRAM}))
    before = set(os.listdir(tmp_path))
    listed, problems = found(path)
    assert len(listed) == 2
    assert set(os.listdir(tmp_path)) == before
    assert not problems
    made = image(tmp_path / "i", archive(one=PROGRAM))
    index = json.loads((made / "index.json").read_text())
    index["manifests"][0]["digest"] = "sha256:../../../../etc/passwd"
    (made / "index.json").write_text(json.dumps(index))
    listed, (problem,) = found(made)
    assert not listed
    assert "is no digest" in problem


def test_what_is_damaged_costs_a_line_and_the_next_is_read(tmp_path: Path) -> None:
    cut = tmp_path / "cut.tgz"
    cut.write_bytes(gzip.compress(archive(one=PROGRAM * 5000), 0)[:20_000])
    good, nowhere = tmp_path / "good", tmp_path / "nowhere"
    good.write_bytes(PROGRAM)
    no_index = image(tmp_path / "i")
    (no_index / "index.json").write_text("[")
    listed, problems = found(cut, nowhere, no_index, good)
    assert listed[-1] == (str(good), PROGRAM)
    assert len(problems) == 3


def test_an_index_that_contains_itself_ends(tmp_path: Path) -> None:
    made = image(tmp_path / "i", archive(one=PROGRAM))
    text = (made / "index.json").read_bytes()
    digest = hashlib.sha256(text).hexdigest()
    (made / "blobs/sha256" / digest).write_bytes(text)
    (made / "index.json").write_text(
        json.dumps({"manifests": [{"digest": f"sha256:{digest}"}] * 3})
    )
    listed, _ = found(made)
    assert len(listed) == 1
