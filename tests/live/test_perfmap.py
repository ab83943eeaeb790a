"""A recording of a real .NET program: perf shows the names that a merged map brings."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fetchc.cli import main
from tests.support.dotnet import NET9, NETCORE31, compiled, host, missing
from tests.support.schemas import errors
from tests.support.toolchains import ROOT

pytestmark = pytest.mark.live

SOURCE = ROOT / "corpus/dotnet/busy/busy.cs"
SETTINGS = {
    f"{prefix}_{name}": value
    for prefix in ("COMPlus", "DOTNET")
    for name, value in {"PerfMapEnabled": "1", "TieredCompilation": "0"}.items()
} | {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
PRECOMPILED = r"\[System.Private.CoreLib\] System.Convert::FromBase64\w+\(.*\)\[ReadyToRun\]"
COMPILED = r"int32 \[busy\] Busy::Work\(int32\)\[\w+\]"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("perf") is None:
        pytest.skip("no perf: .ci/setup installs it")
    return compiled(SOURCE, tmp_path_factory.mktemp("busy") / "busy.dll")


@pytest.fixture(params=[NETCORE31, NET9], ids=["3.1", "9.0"])
def running(request: pytest.FixtureRequest, program: Path) -> Iterator[subprocess.Popen[str]]:
    """The program on a runtime, at work until its input ends."""
    runtime: Path = request.param
    if reason := missing(runtime):
        pytest.skip(reason)
    version = "9.0.1" if runtime == NET9 else runtime.name
    config = program.with_suffix(f".{version}.json")
    named = {"name": "Microsoft.NETCore.App", "version": version}
    config.write_text(json.dumps({"runtimeOptions": {"framework": named}}))
    started = subprocess.Popen(
        [host(runtime, program.parent), "exec", "--runtimeconfig", config, program],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **SETTINGS},
    )  # fmt: skip
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        yield started
    finally:
        started.kill()
        started.communicate()
        for each in Path("/tmp").glob(f"perf*-{started.pid}.*"):
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        Path(f"/tmp/jit-{started.pid}.dump").unlink(missing_ok=True)


def _worked(pid: int, seconds: float) -> None:
    # Return when the process has had a processor for so long from now on.
    def used() -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    until, begin = time.monotonic() + 200, used()
    while used() - begin < seconds:
        assert time.monotonic() < until
        time.sleep(0.02)


def frames(recording: Path, *options: str) -> str:
    command = ["perf", "script", "-i", str(recording), "-F", "ip,sym,dso", *options]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=120, errors="replace"
    ).stdout


def test_perf_shows_names_of_all_code(
    running: subprocess.Popen[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = tmp_path / "perf.data"
    record = ["perf", "record", "-q", "-F", "499", "-g", "-o", str(recording)]
    # For as long as the program takes to get a second of a processor.
    record += ["-p", str(running.pid), "--", "sh", "-c", "read end"]
    with subprocess.Popen(record, stdin=subprocess.PIPE) as recorder:
        assert recorder.stdin is not None
        _worked(running.pid, 1.0)
        recorder.stdin.close()
        assert recorder.wait(60) in (0, 1)  # perf ends with the status of its command
    assert main(["perfmap", "merge", str(running.pid), "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert errors("perfmap", printed) == []
    assert printed["compiled"] >= 2
    assert printed["precompiled"] > 20_000
    plain = frames(recording)
    assert not re.search(PRECOMPILED, plain)  # the merged map alone does not do it
    named = frames(recording, *printed["command"].split()[2:])
    assert re.search(PRECOMPILED, named)
    assert re.search(COMPILED, named)
    unknown = re.findall(r"\[unknown\] \(.*System.Private.CoreLib.dll\)", named)
    assert len(unknown) < len(re.findall(r"\(.*System.Private.CoreLib.dll\)", named)) / 20


def test_lines_of_the_process_and_bytes_of_files(
    running: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pid = str(running.pid)
    assert main(["perfmap", "find", "Convert.FromBase64String", "-p", pid, "--format", "json"]) == 0
    (named,) = json.loads(capsys.readouterr().out)
    # What the kernel itself says of that address.
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split(None, 5)
        low, high = (int(word, 16) for word in words[0].split("-"))
        if low <= named["start"] < high:
            assert words[5] == named["image"]
            assert named["start"] - low + int(words[2], 16) == named["offset"]
            break
    else:
        raise AssertionError("the address is not mapped")
    assert main(["perfmap", "find", f"{named['start'] + 5:#x}", "-p", pid]) == 0
    assert f":{named['offset'] + 5:#x}  " in capsys.readouterr().out
    own = Path(f"/tmp/perf-{pid}.map").read_text().splitlines()
    compiled = next(line for line in own if re.search(COMPILED, line))
    assert main(["perfmap", "find", compiled, "-p", pid]) == 1
    assert "error[FC0906]: the code at" in capsys.readouterr().err
