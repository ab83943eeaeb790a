"""A precompiled image as a Program: methods by name, parameters, types, what is refused."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import fetchc
from fetchc.debuginfo.dotnet import assemblies
from fetchc.debuginfo.dotnet.assemblies import Process, folders_of
from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.debuginfo.open_file import open_binary
from fetchc.diag.diagnostic import CompileError, DebugInfoError
from fetchc.lang.dotnet_language import spell
from fetchc.program.types import EnumType, SequenceType, StructType
from fetchc.quantities import ByteSize
from tests.support.container import contained

FOLDER = Path(__file__).parents[4] / "corpus/dotnet/echo"
SAMPLE = FOLDER / "bin/sample.dll"
KERNEL = "6.1"
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="another root directory needs root")
MAPS = """
import mmap, sys
with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
    print("ready", flush=True)
    sys.stdin.read()
"""


def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("echo_build", FOLDER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_images_are_those_that_are_built() -> None:
    images = builder().images()
    assert len(images) == 3
    for name, content in images.items():
        assert (FOLDER / "bin" / name).read_bytes() == content, name


@pytest.fixture
def program() -> DotnetProgram:
    return DotnetProgram(str(SAMPLE))


@pytest.mark.parametrize(
    "written",
    [
        "sample.Server.Handle(string, int)",
        "Server.Handle(String, Int32)",
        "Handle(string,int)",
        "sample.Server::Handle(string, int)",
        "Server::Handle(System.String,System.Int32)",
        "instance bool [sample] sample.Server::Handle(string,int32)[Tier0]",
    ],
)
def test_one_method_has_many_names(program: DotnetProgram, written: str) -> None:
    (found,) = program.functions_named(written)
    assert (found.name, found.symbol) == (
        "sample.Server.Handle",
        "sample.Server.Handle(string, int)",
    )
    assert [one.name for one in program.parameters(found)] == ["this", "text", "count"]


@pytest.mark.parametrize(
    "written", ["Handle(int)", "Serve.Handle", "ver.Handle", "", ".", "Handle(", "()", "::"]
)
def test_names_that_mean_nothing(program: DotnetProgram, written: str) -> None:
    with_code = {one.name for one in program.functions_named(written)} if written else set()
    assert with_code <= {"sample.Server.Handle"}
    assert written == "Handle(" or not with_code


def test_functions_are_listed_with_their_parameters(program: DotnetProgram) -> None:
    names = list(program.function_names())
    assert "sample.Server.Move(sample.Request, sample.Point, int)" in names
    assert len(names) == len(set(names)) == 6
    for name in names:
        assert [one.symbol for one in program.functions_named(name)] == [name]


def test_addresses_and_code(program: DotnetProgram) -> None:
    (found,) = program.functions_named("Server.Handle(Request)")
    assert program.code(found.address, 2) == b"\xc3\xcc"
    raw = SAMPLE.read_bytes()
    assert raw[program.file_offset(found.address)] == 0xC3
    inner = program.function_at(type(found.address)(found.address + 5))
    assert inner is not None
    assert inner.symbol == found.symbol
    assert program.function_at(type(found.address)(1)) is None
    assert program.code(type(found.address)(1), 4) == b""


def test_types_by_name(program: DotnetProgram) -> None:
    (colour,) = program.types_named("Colour", None)
    assert program.type(colour) == EnumType(
        "sample.Colour", ByteSize(4), True, (("Red", 0), ("Green", 1))
    )
    (listed,) = program.types_named("List<string>", None)
    made = program.type(listed)
    assert isinstance(made, SequenceType)
    assert spell(program, listed) == "System.Collections.Generic.List<string>"
    assert spell(program, made.elements.type) == "string[]"
    (point,) = program.types_named("sample.Point", None)
    shape = program.type(point)
    assert isinstance(shape, StructType)
    assert [(one.name, one.offset) for one in shape.members] == [("X", 0), ("Y", 4), ("Z", 8)]
    assert program.types_named("Nothing", None) == ()
    assert program.types_named("List<", None) == ()
    for wrong in ("int]", "int[3]", "]", "[]", "Nothing[]", "int[,"):
        assert program.types_named(wrong, None) == ()
    for name in ("byte*[]", "int[,]", "int[][,]", "List<int[,]>[]"):
        (array,) = program.types_named(name, None)
        assert spell(program, array).removeprefix("System.Collections.Generic.") == name


def test_missing_references_name_the_assembly_and_the_folders(tmp_path: Path) -> None:
    shutil.copy(SAMPLE, tmp_path)
    lonely = DotnetProgram(str(tmp_path / "sample.dll"))
    with pytest.raises(DebugInfoError) as raised:
        lonely.types_named("Request", None)
    assert raised.value.code == "FC0907"
    assert "`System.Private.CoreLib`" in str(raised.value)
    assert str(tmp_path) in str(raised.value)
    helped = DotnetProgram(str(tmp_path / "sample.dll"), (str(SAMPLE.parent),))
    assert len(helped.types_named("Request", None)) == 1


def test_the_framework_of_a_runtimeconfig_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, shared = tmp_path / "app", tmp_path / "root/shared/Microsoft.NETCore.App"
    app.mkdir()
    for version in ("3.1.2", "3.1.10", "6.0.1", "3.1.x"):
        (shared / version).mkdir(parents=True)
    shutil.copy(SAMPLE, app)
    shutil.copy(SAMPLE.parent / "System.Private.CoreLib.dll", shared / "3.1.10")
    config = app / "sample.runtimeconfig.json"
    config.write_text(
        '{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"}}}'
    )
    monkeypatch.setenv("DOTNET_ROOT", str(tmp_path / "root"))
    assert len(DotnetProgram(str(app / "sample.dll")).types_named("Request", None)) == 1
    for broken in ("", "[]", '{"runtimeOptions": 3}', "[" * 100000):
        config.write_text(broken)
        with pytest.raises(DebugInfoError, match="names no framework"):
            DotnetProgram(str(app / "sample.dll")).types_named("Request", None)


def installed(root: Path, version: str = "3.1.10") -> Path:
    """A dotnet root whose one framework is the sample's core library."""
    shared = root / "shared/Microsoft.NETCore.App" / version
    shared.mkdir(parents=True)
    shutil.copy(SAMPLE.parent / "System.Private.CoreLib.dll", shared)
    return shared


def configured(path: Path, version: str = "3.1.0") -> None:
    framework = f'{{"name": "Microsoft.NETCore.App", "version": "{version}"}}'
    path.write_text(f'{{"runtimeOptions": {{"framework": {framework}}}}}')


@pytest.mark.parametrize(
    "folder", ["shared/Microsoft.AspNetCore.App/3.1.2", "sdk/3.1.102", "sdk/3.1.102/Roslyn/bincore"]
)
def test_a_part_of_an_installation_runs_on_its_framework(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = installed(tmp_path / "own")
    monkeypatch.setenv("DOTNET_ROOT", str(installed(tmp_path / "other").parents[2]))
    inside = tmp_path / "own" / folder
    inside.mkdir(parents=True)
    shutil.copy(SAMPLE, inside)
    if folder.startswith("sdk"):
        # Beside a compiler are the configurations of several programs.
        for name in ("csc", "vbc"):
            configured(inside / f"{name}.runtimeconfig.json", "2.1.0")
        configured(tmp_path / "own/sdk/3.1.102/dotnet.runtimeconfig.json")
    else:
        configured(inside / "Microsoft.AspNetCore.App.runtimeconfig.json")
    sample = str(inside / "sample.dll")
    assert str(shared) in folders_of(sample)
    assert not any("other" in one for one in folders_of(sample))
    assert len(DotnetProgram(sample).types_named("Request", None)) == 1


@ROOT_ONLY
def test_the_runtime_of_a_container_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "container"
    app = root / "app"
    app.mkdir(parents=True)
    shutil.copy(SAMPLE, app)
    configured(app / "sample.runtimeconfig.json")
    installed(root / "opt/dotnet")
    (root / "usr/share").mkdir(parents=True)
    (root / "usr/share/dotnet").symlink_to("/opt/dotnet")  # of the container, not of the host
    # The host has one too, of another build: nothing in it is read.
    other = installed(tmp_path / "host") / "System.Private.CoreLib.dll"
    other.write_bytes(b"")
    monkeypatch.setenv("DOTNET_ROOT", str(tmp_path / "host"))
    monkeypatch.setattr(assemblies, "ROOTS", ("/usr/share/dotnet", str(tmp_path / "host")))
    with contained(root) as pid:
        seen = f"/proc/{pid}/root"
        probe = fetchc.open(f"{seen}/app/sample.dll").probe("Server.Move", kernel=KERNEL)
        assert probe.compile("by.X").fetcharg
        folders = folders_of(f"{seen}/app/sample.dll", (), False, Process(f"/proc/{pid}", seen))
    assert folders == (
        f"{seen}/app", f"{seen}/opt/dotnet/shared/Microsoft.NETCore.App/3.1.10",
    )  # fmt: skip


def test_the_core_library_of_a_process_is_the_one_that_it_has_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whatever this process's DOTNET_ROOT says, and the newest patch that is installed.
    app = tmp_path / "app"
    app.mkdir()
    shutil.copy(SAMPLE, app)
    configured(app / "sample.runtimeconfig.json")
    runs = installed(tmp_path / "runs", "3.1.5")
    monkeypatch.setenv("DOTNET_ROOT", str(installed(tmp_path / "other").parents[2]))
    (core,) = runs.iterdir()
    command = [sys.executable, "-c", MAPS, str(core)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        own = f"/proc/{running.pid}"
        folders = folders_of(str(app / "sample.dll"), (), False, Process(own))
        assert folders[:2] == (str(app), str(runs))
        found = open_binary(f"{own}/root{app}/sample.dll")
        assert isinstance(found, DotnetProgram)
        assert found._types.closed.references.core().path == str(core)
        running.kill()


def test_compile_through_the_library() -> None:
    probe = fetchc.open(str(SAMPLE)).probe("EchoProvider.calculateEchoValue", kernel=KERNEL)
    assert probe.compile("echo.Length").fetcharg == "+8(%si):s32"
    assert [one.code for one in probe.warnings] == ["FC0618"]
    with pytest.raises(CompileError):
        fetchc.open(str(SAMPLE)).probe("Server.Move", returns=True, kernel=KERNEL)


def test_machines_of_32_bits_are_refused(tmp_path: Path) -> None:
    for name in ("sample.dll", "System.Private.CoreLib.dll"):
        raw = bytearray((SAMPLE.parent / name).read_bytes())
        at = raw.index(b"PE\0\0") + 4
        raw[at : at + 2] = (0x1C4 ^ 0x7B79).to_bytes(2, "little")  # 32-bit Arm, Linux
        (tmp_path / name).write_bytes(raw)
    program = DotnetProgram(str(tmp_path / "sample.dll"))
    assert program.architecture == "arm"
    with pytest.raises(DebugInfoError, match=r"layouts of \.NET for `arm` are not known"):
        program.types_named("Request", None)


def test_on_64_bit_arm(tmp_path: Path) -> None:
    # By the convention's documents: structures of 12 bytes in two registers, all in their order.
    for name, content in builder().images(0xAA64 ^ 0x7B79).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    probe = fetchc.open(str(tmp_path / "sample.dll")).probe("Server.Move", kernel=KERNEL)
    asked = ["request.Name.Length", "by.Y", "by.Z", "times"]
    found = [probe.compile(one).fetcharg for one in asked]
    assert found == ["+8(+24(%x0)):s32", "%x1:b32@32/64", "%x2:u8", "%x3:s32"]
    x86 = fetchc.open(str(SAMPLE)).probe("Server.Move", kernel=KERNEL)
    assert probe.offset == x86.offset


def test_a_return_at_ones_own_risk() -> None:
    taken = fetchc.open(str(SAMPLE), unsafe_return=True)
    probe = taken.probe("calculateEchoValue", returns=True, kernel=KERNEL)
    argument = probe.compile("$retval.Length")
    assert argument.fetcharg == "+8($retval):s32"
    by_code = {one.code: one for one in probe.warnings}
    assert by_code["FC0621"].notes == ("an exception that passes a return probe ends the program",)
    # Go's returns are never left to the kernel.
    go = fetchc.open(str(FOLDER.parents[1] / "go/dnsforward/bin/go1.27"), unsafe_return=True)
    again = go.probe("main.(*server).forward", returns=True, kernel=KERNEL)
    assert again.compile("$ret0").probe.kind == "return-site"


def test_what_has_no_code_is_reported_with_the_reason(program: DotnetProgram) -> None:
    assert dict(program.dotnet.methods_without_code()) == {
        "sample.Server.Stop()": "it is abstract: its implementations have code",
        "sample.Server.Late()": "the compiler left it to the runtime",
    }
