"""Toolchains that cannot be used, in every way that one can fail, and such that can."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fetchc.conformance import c_programs, child_processes, toolchains
from fetchc.conformance.child_processes import ConformanceError
from fetchc.conformance.toolchains import c_toolchain, go_toolchain, mono_toolchain
from tests.support.toolchains import go_root, require


def script(folder: Path, name: str, *lines: str) -> str:
    path = folder / name
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return str(path)


def wrapper(folder: Path, *lines: str, name: str = "cc") -> str:
    require("gcc")
    return script(folder, name, 'case "$1" in --version) echo mine 1.0; exit;; esac', *lines)


def diagnosed(command: str, folder: Path, code: str) -> str:
    with pytest.raises(ConformanceError) as caught:
        c_toolchain(command, folder)
    diagnostic = caught.value.diagnostic
    assert diagnostic.code == code
    assert diagnostic.help
    return diagnostic.message


def test_a_compiler_that_is_missing(tmp_path: Path) -> None:
    message = diagnosed("no-such-cc", tmp_path, "FC0801")
    assert message == "`no-such-cc` cannot be run: No such file or directory"


def test_a_mono_that_is_missing_or_has_no_compiler_beside_it(tmp_path: Path) -> None:
    mono = script(tmp_path, "mono", "echo mine 1.0")
    for command, missing in (("no-such-mono", "no-such-mono"), (mono, f"{tmp_path}/mcs")):
        with pytest.raises(ConformanceError) as caught:
            mono_toolchain(command, tmp_path)
        assert caught.value.diagnostic.code == "FC0801"
        assert f"`{missing}` cannot be run" in caught.value.diagnostic.message


def test_a_compiler_that_may_not_be_run(tmp_path: Path) -> None:
    path = tmp_path / "cc"
    path.write_text("#!/bin/sh\n")
    assert "Permission denied" in diagnosed(str(path), tmp_path, "FC0801")


def test_a_compiler_that_refuses(tmp_path: Path) -> None:
    command = wrapper(tmp_path, "echo 'error: licence expired' >&2; exit 3")
    message = diagnosed(command, tmp_path, "FC0802")
    assert "ended with status 3 and built no program: error: licence expired" in message


def test_a_compiler_that_builds_nothing(tmp_path: Path) -> None:
    assert "it said nothing" in diagnosed(wrapper(tmp_path, "exit 0"), tmp_path, "FC0802")


def test_a_compiler_that_crashes(tmp_path: Path) -> None:
    message = diagnosed(wrapper(tmp_path, "kill -SEGV $$"), tmp_path, "FC0802")
    assert "was ended by SIGSEGV" in message


def test_a_compiler_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid_file = tmp_path / "pid"
    command = wrapper(tmp_path, f"sleep 1000 & echo $! >{pid_file}; wait")
    for seconds in (0.5, 4, 32):  # until it is there to hang
        monkeypatch.setattr(c_programs, "_BUILD_SECONDS", seconds)
        message = diagnosed(command, tmp_path, "FC0803")
        assert message == f"`cc` did not end within {seconds:g} s"
        if pid_file.exists() and pid_file.read_text():
            break
    assert _ends(int(pid_file.read_text()))


def _ends(pid: int) -> bool:
    # An orphan is reaped by whoever adopts orphans.
    until = time.monotonic() + 60
    while _runs(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_a_compiler_that_warns(tmp_path: Path) -> None:
    command = wrapper(tmp_path, "echo 'a.c:1: warning: tired' >&2; echo note", 'exec gcc "$@"')
    found = c_toolchain(command, tmp_path)
    assert (found.version, found.language, found.left_out) == ("mine 1.0", "c", ())
    assert len(found.builds) == 4


def test_a_compiler_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper(tmp_path, 'exec gcc "$@"')
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.chdir(tmp_path)
    assert len(c_toolchain("./cc", scratch).builds) == 4


def test_a_compiler_that_is_too_old_for_some_options(tmp_path: Path) -> None:
    old = "case \"$*\" in *dwarf-5*) echo 'error: unknown option -gdwarf-5' >&2; exit 1;; esac"
    found = c_toolchain(wrapper(tmp_path, old, 'exec gcc "$@"'), tmp_path)
    assert [build.options[1] for build in found.builds] == ["-gdwarf-4", "-gdwarf-4"]
    assert len(found.left_out) == 2
    assert all("unknown option -gdwarf-5" in line for line in found.left_out)


def test_a_compiler_that_strips(tmp_path: Path) -> None:
    message = diagnosed(wrapper(tmp_path, 'exec gcc "$@" -s'), tmp_path, "FC0804")
    assert "no debug information" in message


def test_a_compiler_for_another_machine(tmp_path: Path) -> None:
    lines = ('gcc "$@" || exit', 'while [ "$1" != -o ]; do shift; done', "printf '\\267\\0' |")
    patch = 'dd of="$2" bs=1 seek=18 conv=notrunc 2>/dev/null'  # e_machine: AArch64
    message = diagnosed(wrapper(tmp_path, *lines, patch), tmp_path, "FC0805")
    assert "cannot be run: Exec format error" in message


def test_a_compiler_whose_programs_fail(tmp_path: Path) -> None:
    lines = ('while [ "$1" != -o ]; do shift; done', "printf '#!/bin/sh\\nexit 7\\n' >\"$2\"")
    message = diagnosed(wrapper(tmp_path, *lines, 'chmod +x "$2"'), tmp_path, "FC0805")
    assert "ended with status 7" in message


def test_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    toolchains.here()
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(ConformanceError, match="FC0807"):
        toolchains.here()


@pytest.mark.parametrize("answer", ["go version devel", "", "gcc 12"])
def test_what_is_no_go(answer: str, tmp_path: Path) -> None:
    with pytest.raises(ConformanceError, match=r"FC0801.*does not say which Go"):
        go_toolchain(script(tmp_path, "go", f"echo '{answer}'"), tmp_path)


def test_a_go_that_refuses(tmp_path: Path) -> None:
    lines = ("case $1 in version) echo go version go1.22.1 linux/amd64; exit;; esac",)
    command = script(tmp_path, "go", *lines, "echo '# x' >&2; echo 'no runtime' >&2; exit 2")
    with pytest.raises(ConformanceError, match=r"FC0802.*built no program: no runtime"):
        go_toolchain(command, tmp_path)


def test_go_by_its_root(tmp_path: Path) -> None:
    require("go1.22")
    found = go_toolchain(str(go_root("1.22")), tmp_path)
    assert found.language == "go"
    assert [str(build) for build in found.builds] == ["go1.22", "go1.22 -gcflags=-N -l"]


def test_a_program_that_may_not_be_traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_processes, "_LAUNCHER", "import os; os._exit(99)")
    with pytest.raises(ConformanceError, match="FC0806"):
        child_processes.run_with_stops(Path(script(tmp_path, "any", "exit 0")), [])


def test_a_traced_program_that_hangs(tmp_path: Path) -> None:
    if reason := child_processes.unavailable():
        pytest.skip(reason)
    endless = Path(script(tmp_path, "endless", "sleep 100"))
    with pytest.raises(ConformanceError, match="FC0803"):
        child_processes.run_with_stops(endless, [], seconds=0.5)


def test_a_traced_program_that_fails(tmp_path: Path) -> None:
    if reason := child_processes.unavailable():
        pytest.skip(reason)
    with pytest.raises(ConformanceError, match=r"FC0805.*ended with status 5"):
        child_processes.run_with_stops(Path(script(tmp_path, "five", "exit 5")), [])


def test_what_a_child_starts_ends_with_it(tmp_path: Path) -> None:
    command = script(tmp_path, "forks", "sleep 1000 >/dev/null 2>&1 & echo $!")
    done = child_processes.call([command], tmp_path, 60)
    assert done.status == 0
    assert _ends(int(done.output))
    assert os.listdir(tmp_path) == ["forks"]
