"""The types of operands and constants, by language: what an operator gives, or its refusal."""

from __future__ import annotations

import subprocess

import pytest

import fetchc
from tests.support.toolchains import ROOT, require

SOURCE = """
enum kind { KIND = 3 };
#ifdef __cplusplus
enum small : unsigned char { SMALL = 3 };
#endif
struct s { int i; unsigned u; long l; float f; unsigned long m : 32, wide : 40; enum kind kind;
#ifdef __cplusplus
enum small small;
#endif
};
#ifdef __cplusplus
extern "C"
#endif
int take(struct s *e) { return e->i; }
"""
GO = ROOT / "corpus/go/dnsforward/bin/go1.27"
DOTNET = ROOT / "corpus/dotnet/echo/bin/sample.dll"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, fetchc.Probe]:
    folder = tmp_path_factory.mktemp("operands")
    found = {}
    for language, compiler in (("c", "gcc"), ("c++", "g++")):
        require(compiler)
        command = [
            compiler,
            "-g",
            "-w",
            "-shared",
            "-x",
            language,
            "-",
            "-o",
            str(folder / compiler),
        ]
        subprocess.run(command, check=True, input=SOURCE, encoding="utf-8", timeout=60)
        found[language] = fetchc.open(str(folder / compiler)).probe("take")
    found["go"] = fetchc.open(str(GO)).probe("main.(*server).handleRequest")
    found["c#"] = fetchc.open(str(DOTNET)).probe("FibonacciProvider.calculateFibonacciValue")
    return found


@pytest.mark.parametrize(
    ("language", "text", "type"),
    [
        ("c", "e->u + -2147483648", "long"),
        ("c", "e->u + 0x80000000", "unsigned int"),
        ("c", "e->u + 2147483648", "long"),
        ("c", "e->i + 3ul", "unsigned long"),
        ("c", "e->f + 0.1f", "float"),
        ("c", "e->f + 0.1", "double"),
        ("c", "e->m + 1", "unsigned int"),
        ("c", "e->kind - 5", "unsigned int"),
        ("c", "KIND - e->i", "int"),
        ("c++", "e->small - 5", "int"),
        ("c++", "e->kind + 1", "int or unsigned int"),
        ("c++", "e->kind + e->u", "unsigned int"),
        ("c++", "e->kind - e->l", "long"),
        ("c++", "(int)e->kind - 5", "int"),
        ("go", "r.Question[0].Qtype + (1 << len(r.Question))", "uint16"),
        ("go", "1 << len(r.Question)", "int"),
        ("go", "int32(3) + int32(r.Question[0].Qtype)", "int32"),
        ("c#", "pos + 3u", "long"),
        ("c#", "(uint)pos + 3", "uint"),
        ("c#", "-(uint)pos", "long"),
        ("c#", "(ulong)pos + 3", "ulong"),
        ("c#", "pos + -2147483648", "int"),
        ("c#", "pos + 2147483648", "long"),
    ],
)
def test_results_have_the_types_of_the_language(
    programs: dict[str, fetchc.Probe], language: str, text: str, type: str
) -> None:
    spelled = programs[language].compile(text, computes=True).type
    usual = {"long int": "long", "long unsigned int": "unsigned long"}
    assert usual.get(spelled, spelled) == type


@pytest.mark.parametrize(
    ("language", "text", "message"),
    [
        ("c", "e->i + 3u8", "C has no number suffix `u8`"),
        ("c", "e->wide << 1", "`<<` of this bit field has 64 bits or, with gcc, 40"),
        ("c++", "e->kind - 5", "the result of `-` is signed or unsigned"),
        ("c++", "e->kind < e->i", "the result of `<` is signed or unsigned"),
        ("c++", "(e->kind + 1) - 5", "the result of `-` is signed or unsigned"),
        ("go", "r.Question[0].Qtype + int(3)", "`+` does not apply to `uint16` and `int`"),
        ("go", "r.Question[0].Qtype + 70000", "70000 is not in the range of `uint16`"),
        ("go", "uint8(300)", "300 is not in the range of `uint8`"),
        ("go", "(1 << 62) << 5", "needs more than 64 bits"),
        ("c#", "(ulong)pos + -1", "C# has no operator for `ulong` and `int`"),
        ("c#", "-(ulong)pos", "`-` does not apply to `ulong`"),
        ("c#", "(byte)300", "300 is not in the range of `byte`"),
    ],
)
def test_refusals(
    programs: dict[str, fetchc.Probe], language: str, text: str, message: str
) -> None:
    with pytest.raises(fetchc.CompileError) as raised:
        programs[language].compile(text, computes=True)
    assert message in raised.value.diagnostics[0].message
