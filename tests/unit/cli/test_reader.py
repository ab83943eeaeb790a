"""The child that parses files without root: what it answers, and what is believed of it."""

from __future__ import annotations

import copyreg
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fetchc import privileges
from fetchc.ceilings import Exceeded
from fetchc.cli import add_command, main, parsing_child, trace_targets
from fetchc.cli.option_table import Options
from fetchc.cli.output import Output
from fetchc.cli.parsing_child import Reader, of_stranger, probed_file
from fetchc.debuginfo import cache
from fetchc.debuginfo.environment import CacheFolder, Environment
from fetchc.debuginfo.safe_open import file_identity
from fetchc.diag.diagnostic import CompileError, DebugInfoError, reject
from fetchc.source import Span
from fetchc.tracer.perf_maps import Collected, Merged
from tests.support.container import contained
from tests.support.programs import CORPUS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give it up")

BINARY = CORPUS / "c/layouts/bin/gcc-O2-dwarf5"


class Escape:
    """Unpickled, it runs a command."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("echo escaped",)


def reading(**questions: object) -> Reader:
    return Reader(questions, str(BINARY), Output("never"))  # type: ignore[arg-type]


def test_questions_are_answered_by_another_process_without_root() -> None:
    with reading(who=os.getuid, add=lambda a, b: a + b, pid=os.getpid) as reader:
        assert reader.ask("who") == privileges.NOBODY
        assert reader.ask("add", (1, "a"), ({"b": None}.get("b"),)) == (1, "a", None)
        assert reader.ask("pid") != os.getpid()


def _unknown_to_fetchc(message: str) -> Exception:
    raise AssertionError(message)


def test_an_error_comes_back_whatever_a_library_registers_for_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As tblib does for all errors that are loaded, once Dask's distributed is imported.
    reduce = lambda error: (_unknown_to_fetchc, (str(error),))  # noqa: E731
    monkeypatch.setitem(copyreg.dispatch_table, CompileError, reduce)

    def refuse() -> None:
        raise reject("FC0201", "no such name", Span(0, 3))

    with (
        reading(refuse=refuse) as reader,
        pytest.raises(CompileError, match="FC0201: no such name"),
    ):
        reader.ask("refuse")


def test_what_a_question_raises_comes_back() -> None:
    def refuse() -> None:
        raise reject("FC0201", "no such name", Span(0, 3))

    def unreadable() -> None:
        raise DebugInfoError("FC0904", "/a", "damaged", ".debug_info", 16)

    def bug() -> None:
        raise KeyError("of ours")

    with reading(refuse=refuse, unreadable=unreadable, bug=bug) as reader:
        with pytest.raises(Exception, match="FC0201: no such name"):
            reader.ask("refuse")
        with pytest.raises(DebugInfoError, match=r"\.debug_info\+0x10"):
            reader.ask("unreadable")
        with pytest.raises(RuntimeError, match="KeyError: 'of ours'"):
            reader.ask("bug")


class OfItsOwn(BaseException):
    """Derives from what no handler of exceptions takes, and cannot be pickled."""

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("cannot be sent")


@pytest.mark.parametrize(
    ("question", "named"),
    [
        (lambda: (_ for _ in ()).throw(OfItsOwn("odd")), "OfItsOwn: odd"),
        (lambda: (_ for _ in ()).throw(SystemExit(3)), "SystemExit: 3"),
        (lambda: (_ for _ in ()).throw(EOFError("of a file")), "EOFError: of a file"),
        (lambda: lambda: None, "Can't pickle|cannot pickle|Can't get"),  # an answer that is none
        (lambda: _nested(5000), "RecursionError"),
        (lambda: _unsendable(), "cannot be sent"),
    ],
)
def test_no_failure_of_the_child_is_lost(question: object, named: str) -> None:
    # Its traceback is seen, not `ended with status 1`; and the child goes on.
    with reading(fail=question, ok=lambda: 7) as reader:
        with pytest.raises(RuntimeError, match=named):
            reader.ask("fail")
        assert reader.ask("ok") == 7


def _nested(depth: int) -> object:
    found: object = ()
    for _ in range(depth):
        found = (found,)
    return found


def _unsendable() -> None:
    raise DebugInfoError("FC0904", "/a", "damaged", help=OfItsOwn())  # type: ignore[arg-type]


def test_a_failure_of_what_the_parent_does_for_the_child_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def store(*_: object) -> None:
        raise KeyError("in the parent")

    monkeypatch.setattr(cache, "store", store)
    options = in_cache(tmp_path / "cache")
    binary = tmp_path / "program"
    binary.write_bytes(b"")
    questions = {"write": lambda: of_test(options).write(b"bytes")}
    with (
        Reader(questions, str(binary), Output("never"), options) as reader,
        pytest.raises(RuntimeError, match="in the parent"),
    ):
        reader.ask("write")


def test_it_has_no_file_open_that_its_parent_opened(tmp_path: Path) -> None:
    # A shell may have handed down what root alone may write to.
    with (tmp_path / "of root").open("w") as file:

        def descriptors() -> list[str]:
            return [
                os.readlink(f"/proc/self/fd/{each}")
                for each in range(3, 64)
                if os.path.lexists(f"/proc/self/fd/{each}")
            ]

        with reading(open=descriptors, write=lambda: os.write(file.fileno(), b"x")) as reader:
            found = reader.ask("open")
            assert [each for each in found if "pipe:" not in each and each != "/dev/null"] == []
            with pytest.raises(OSError, match="Bad file descriptor"):
                reader.ask("write")
    assert (tmp_path / "of root").read_text() == ""


@pytest.mark.parametrize(
    "forged", [b"", b"\x80", b"(lp0\n", b"\x80\x05N.", b"\x80\x05]q.", b"g0\n."]
)
def test_an_answer_that_is_none_is_an_error_of_the_file(forged: bytes) -> None:
    # As a child would send it that runs somebody else's code.
    def forge() -> None:
        def send(self: parsing_child._Channel, message: object) -> None:
            self._target.write(len(forged).to_bytes(8, sys.byteorder) + forged)
            self._target.flush()

        parsing_child._Channel.send = send  # type: ignore[method-assign]

    with reading(forge=forge) as reader:
        with pytest.raises(DebugInfoError, match="the process that reads it sent") as raised:
            reader.ask("forge")
        assert raised.value.code == "FC0905"
        # Nor does this process, which has root, answer in its place.
        with pytest.raises(DebugInfoError, match="the process that reads it sent"):
            reader.ask("forge")


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGUSR1])
def test_a_child_that_ends_is_an_error_of_the_file(ending: signal.Signals) -> None:
    with reading(pid=os.getpid, wait=lambda: time.sleep(60)) as reader:
        end = threading.Timer(0.1, os.kill, (reader.ask("pid"), ending))
        end.start()
        with pytest.raises(DebugInfoError, match=f"ended with {ending.name}") as raised:
            reader.ask("wait")
        end.join()
        assert raised.value.code == "FC0905"
        assert raised.value.path == str(BINARY)
        with pytest.raises(DebugInfoError, match=f"ended with {ending.name}"):
            reader.ask("pid")


def test_nothing_but_records_is_taken_from_it(capfd: pytest.CaptureFixture[str]) -> None:
    with (
        reading(escape=Escape) as reader,
        pytest.raises(DebugInfoError, match=r"sent no message: .*system"),
    ):
        reader.ask("escape")
    assert "escaped" not in capfd.readouterr().out


class Types:
    """What answers questions about a file."""

    __module__ = "fetchc.of_a_test"
    header = 3

    def __init__(self) -> None:
        self.asked = 0

    def name(self, number: int) -> str:
        self.asked += 1
        return f"{number} of {os.getuid()}, question {self.asked}"

    def broken(self) -> None:
        raise DebugInfoError("FC0904", "/a", "damaged")


def test_an_object_that_holds_a_file_stays_there_and_is_asked() -> None:
    types = Types()
    with reading(plan=lambda: (types, "shape", [types]), other=Types) as reader:
        here, shape, (again,) = reader.ask("plan")
        assert shape == "shape"
        assert again is here
        assert here is not types
        assert here.header == 3
        assert here.name(7) == f"7 of {privileges.NOBODY}, question 1"
        assert here.name(7) == here.name(7)  # it is asked once
        assert here.name(8) == f"8 of {privileges.NOBODY}, question 2"
        assert reader.ask("other") is not here
        with pytest.raises(DebugInfoError, match="damaged"):
            here.broken()
        with pytest.raises(AttributeError):
            _ = here._asked


def test_the_child_ends_with_its_parent() -> None:
    script = """
import os, time
from fetchc.cli.option_table import Options
from fetchc.cli.output import Output
from fetchc.cli.parsing_child import Reader
reader = Reader({"pid": os.getpid, "wait": lambda: time.sleep(60)}, "/a", Output("never"))
with reader:
    print(reader.ask("pid"), flush=True)
    reader.ask("wait")
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    end = time.monotonic() + 20
    while Path(f"/proc/{child}").exists():
        state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "Z":  # nobody here reaps it
            break
        assert time.monotonic() < end
        time.sleep(0.02)


def test_where_root_cannot_be_given_up_the_user_learns_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(privileges, "_MACHINES", {})
    with reading(who=os.getuid) as reader:
        assert reader.ask("who") == 0
    assert "note: files are read with the rights of root: " in capsys.readouterr().err


@pytest.mark.parametrize("step", ["let_go", "give_up_root"])
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM])
def test_where_a_limit_keeps_root_nothing_is_read(
    step: str, number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def limited(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(parsing_child, step, limited)
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    before = children.read_text()
    with pytest.raises(OSError, match=os.strerror(number)), reading(who=os.getuid):
        raise AssertionError("it answers with the rights of root")
    assert capsys.readouterr().err == ""
    assert children.read_text() == before


@pytest.mark.parametrize("command", ["trace", "add"])
def test_trace_and_add_read_files_without_root(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(options: object) -> None:
        raise DebugInfoError("FC0904", "here", f"read by user {os.getuid()}")

    monkeypatch.setattr("fetchc.cli.option_table.Options.opened", opened)
    assert main([command, "n", "-x", str(BINARY), "-f", "visit"]) == 3
    assert f"read by user {privileges.NOBODY}" in capsys.readouterr().err


def test_a_probe_of_another_file_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    collect = trace_targets.collect

    def forged(*arguments: object) -> object:
        found = collect(*arguments)  # type: ignore[arg-type]
        for each in found.chosen:
            lines = tuple(line.replace(str(BINARY), "/bin/true") for line in each.plan.definitions)
            object.__setattr__(each.plan, "definitions", lines)
        return found

    monkeypatch.setattr("fetchc.cli.trace_command.collect", forged)
    assert main(["trace", "r->a", "-x", str(BINARY), "-f", "visit", "--timeout", "1"]) in (1, 3)
    assert main(["trace", "-x", str(BINARY), "-f", "visit", "--timeout", "1"]) == 3
    assert "FC0905" in capsys.readouterr().err


def test_an_event_elsewhere_is_not_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Its name becomes a path below tracefs, of a file that root writes `1` to.
    (tmp_path / "event").mkdir()
    (tmp_path / "event/enable").symlink_to(tmp_path / "victim")
    (tmp_path / "victim").write_text("of root")
    out = "../" * 8 + str(tmp_path)
    prepared = add_command.prepared

    def forged(options: Options) -> object:
        found = prepared(options)
        object.__setattr__(found.wanted, "group", out)
        object.__setattr__(found.wanted, "event", "event")
        return found

    monkeypatch.setattr("fetchc.cli.add_command.prepared", forged)
    monkeypatch.setattr("fetchc.cli.add_command.add", lambda *_: pytest.fail("it is added"))
    assert main(["add", "-x", str(BINARY), "-f", "visit", "--enable"]) == 3
    assert "FC0905" in capsys.readouterr().err
    assert (tmp_path / "victim").read_text() == "of root"


def test_a_perf_map_of_another_process_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A part of the path that root writes to, and its text.
    found = Collected("0 10 forged\n", 1, 0, ())
    written: list[tuple[object, ...]] = []
    monkeypatch.setattr("fetchc.cli.perfmap_command.collected", lambda process: found)
    monkeypatch.setattr("fetchc.cli.perfmap_command.Process", lambda pid: Unskipped())

    def write(*arguments: object) -> Merged:
        written.append(arguments)
        return Merged("/a", 1, 0, "/b", ())

    monkeypatch.setattr("fetchc.cli.perfmap_command.write", write)
    with process_of(1234) as pid:
        assert main(["perfmap", "merge", str(pid)]) == 0
    assert written == [(pid, found)]


def test_a_question_of_a_batch_that_costs_too_much_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def answer(*_: object) -> None:
        raise Exceeded("more than 1 MB of memory")

    monkeypatch.setattr("fetchc.cli.batch_command.answer", answer)
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with process_of(1234) as pid:
        line = json.dumps({"binary": f"/proc/{pid}/exe", "expressions": ["x"]})
        (tmp_path / "batch").write_text(f"{line}\n" * 4)
        before = children.read_text()
        assert main(["compile", "--batch", str(tmp_path / "batch")]) == 3
        assert children.read_text() == before
    assert capfd.readouterr().out.count("FC0905") >= 4


class Unskipped:
    skipped: tuple[str, ...] = ()


def test_only_definitions_of_the_named_file_are_believed(tmp_path: Path) -> None:
    image = tmp_path / "service.exe"
    beside = tmp_path / "service.exe.so"
    for path in (image, beside):
        path.write_bytes(b"")
    read = {str(path): file_identity(path.stat()) for path in (image, beside)}
    lines = [f"p:fetchc_1/a {image}:0x10 x=%di", f"r8:fetchc_1/a {beside}:0x10"]
    probed_file(str(image), read, lines)
    for line in (
        "p:fetchc_1/a /bin/true:0x10",
        "p:fetchc_1/a vfs_read",
        f"p:fetchc_1/a {image}:0x10\np:fetchc_1/b /bin/true:0x10",
        f"-:fetchc_1/a {image}:0x10",
        "p:fetchc_1/a",
        "",
    ):
        with pytest.raises(DebugInfoError, match="answered with"):
            probed_file(str(image), read, [line])
    line = f"p:g/e {image}:0x10"
    probed_file(str(image), read, [line], ("g", "e"))
    for event in (("g", "f"), ("../g", "e"), ("g/e", "")):
        with pytest.raises(DebugInfoError, match="answered with"):
            probed_file(str(image), read, [line], event)
    with pytest.raises(DebugInfoError, match="answered with"):
        probed_file(str(image), read, [f"p:../g/e {image}:0x10"], ("..", "g/e"))


def test_only_the_file_that_was_read_is_believed(tmp_path: Path) -> None:
    image, other = tmp_path / "service", tmp_path / "other"
    for path in (image, other):
        path.write_bytes(b"")
    read, line = file_identity(image.stat()), f"p:g/e {image}:0x10"
    probed_file(str(image), {str(image): read}, [line])
    for files in ({str(other): file_identity(other.stat())}, {"": ""}, {"/nowhere": ""}):
        with pytest.raises(DebugInfoError, match="answered with"):
            probed_file(str(image), files, [line])
    for identity in (file_identity(other.stat()), ""):
        with pytest.raises(DebugInfoError, match="replaced or changed"):
            probed_file(str(image), {str(image): identity}, [line])
    other.replace(image)
    with pytest.raises(DebugInfoError, match="replaced or changed"):
        probed_file(str(image), {str(image): read}, [line])
    os.utime(image, (1, 1))  # the same file, changed
    with pytest.raises(DebugInfoError, match="replaced or changed"):
        probed_file(str(image), {str(image): read}, [line])


@contextmanager
def process_of(user: int, path: str = "/bin/sleep") -> Iterator[int]:
    command = ["setpriv", f"--reuid={user}", "--clear-groups", path, "60"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + 20
            while os.stat(f"/proc/{process.pid}").st_uid != user:
                assert time.monotonic() < end
                time.sleep(0.01)
            yield process.pid
        finally:
            process.kill()


def test_what_another_users_process_gives_to_read_is_read_without_root(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def opened(options: object) -> None:
        raise DebugInfoError("FC0904", "here", f"read by user {os.getuid()}")

    monkeypatch.setattr("fetchc.cli.option_table.Options.opened", opened)
    with process_of(1234) as pid:
        path = f"/proc/{pid}/exe"
        assert of_stranger(path)
        for words in (["compile", "n", "-f", "main"], ["functions"], ["types"]):
            assert main([*words, "-x", path]) == 3
            assert f"read by user {privileges.NOBODY}" in capfd.readouterr().err
    assert not of_stranger("/proc/self/exe")
    assert not of_stranger(f"/proc/{os.getpid()}/exe")
    assert main(["functions", "-x", f"/proc/{os.getpid()}/exe"]) == 3
    assert "read by user 0" in capfd.readouterr().err


def test_its_parent_writes_the_files_that_the_user_names(tmp_path: Path) -> None:
    policy, table = tmp_path / "policy.btf", tmp_path / "table.json"
    tmp_path.chmod(0o700)

    def run(*words: str | Path) -> str:
        command = [sys.executable, "-m", "fetchc", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stderr

    with process_of(1234) as pid:
        c, go = [
            f"/proc/{pid}/root{path}" for path in (BINARY, CORPUS / "go/dnsforward/bin/go1.27")
        ]
        run("compile", "r->text", "-f", "visit", "-x", c, "--format", "tetragon", "--btf", policy)
        words = "runtime.g.goid", "--format", "builds", "--into", table, "-x", go
        run("offsets", *words)
        assert "1 of them were known" in run("offsets", *words)
    assert policy.read_bytes()[:2] == b"\x9f\xeb"
    assert "1.27.3" in table.read_text()
    assert {path.stat().st_uid for path in (policy, table)} == {0}


def test_no_other_file_is_written_for_it(tmp_path: Path) -> None:
    options, output = Options("compile"), Output("never")
    options.btf = str(tmp_path / "named")

    def write(path: str, content: bytes | str) -> None:
        output.replace_file(path, content)  # type: ignore[arg-type]

    with Reader({"write": write}, str(BINARY), output, options) as reader:
        for path, content in ((str(tmp_path / "other"), b"x"), ("", b"x"), (options.btf, "x")):
            with pytest.raises(PermissionError):
                reader.ask("write", path, content)
        reader.ask("write", options.btf, b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["named"]


def test_the_root_of_a_container_is_a_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def opened(options: object) -> None:
        raise DebugInfoError("FC0904", "here", f"read by user {os.getuid()}")

    monkeypatch.setattr("fetchc.cli.option_table.Options.opened", opened)
    with contained(tmp_path) as pid:
        assert os.stat(f"/proc/{pid}").st_uid == 0
        path = f"/proc/{pid}/root" + "/bin/app"
        assert of_stranger(path)
        assert main(["functions", "-x", path]) == 3
        assert f"read by user {privileges.NOBODY}" in capfd.readouterr().err
    while os.path.exists(f"/proc/{pid}"):
        time.sleep(0.01)
    assert of_stranger(path)  # and who has the number from now on


def test_a_process_that_ends_after_the_look_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    answers = iter([True])
    monkeypatch.setattr(parsing_child, "of_stranger", lambda path: next(answers, False))
    assert main(["functions", "-x", "/proc/4194303/exe"]) == 3
    assert "FC0901" in capfd.readouterr().err


def in_cache(folder: Path) -> Options:
    options = Options("trace")
    options.environment = Environment(CacheFolder(str(folder)))
    return options


def of_test(options: Options) -> cache.CachedFile:
    assert options.environment is not None
    assert options.environment.cache is not None
    return cache.CachedFile(options.environment.cache, "ab12", "of a test", ".section")


def test_its_parent_writes_to_the_cache(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    options = in_cache(folder)
    content = zlib.compress(b"x" * 1000)

    def cached() -> bytes:
        found = of_test(options).upto(len(content))
        return b"" if found is None else bytes(found[: len(content)])

    binary = tmp_path / "program"
    binary.write_bytes(b"")
    questions = {"write": lambda: of_test(options).write(content), "cached": cached}
    with Reader(questions, str(binary), Output("never"), options) as reader:
        reader.ask("write")
        assert reader.ask("cached") == content
    assert cached() == content
    assert [path.stat().st_uid for path in folder.iterdir()] == [0]


@pytest.mark.parametrize("way", ["mode", "folder", "link", "relative"])
def test_nothing_is_cached_of_what_others_can_change(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    options = in_cache(folder)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    binary = tmp_path / "program" if way in ("mode", "link") else theirs / "program"
    binary.write_bytes(b"")
    if way == "mode":
        binary.chmod(0o666)
    elif way == "link":  # root's file by a link that is turned to another one meanwhile
        (theirs / "link").symlink_to(binary)
        binary = theirs / "link"
    os.chown(theirs, 1234, 1234)  # who can rename in it
    if way == "relative":
        monkeypatch.chdir(theirs)
        binary = Path("program")
    questions = {"write": lambda: of_test(options).write(b"bytes")}
    with Reader(questions, str(binary), Output("never"), options) as reader:
        reader.ask("write")
    assert not folder.exists()


@pytest.mark.parametrize(
    "name", ["../ab-12.section", "ab-12.txt", "a/b.section", ".section", "é.btf"]
)
def test_names_that_no_cache_file_has_are_not_written(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    cache.store(CacheFolder(str(folder)), name, b"bytes")
    assert [path.name for path in tmp_path.rglob("*")] in ([], ["cache"])
