"""Members that the kernel's source has by macros: `sk->sk_dport` is in `__sk_common`."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from tests.support.btfwriter import BtfWriter

POINTER = 2


@pytest.fixture
def probe(tmp_path: Path) -> fetchc.Probe:
    w = BtfWriter()
    port = w.integer("unsigned short", 2)
    number = w.integer("int", 4, 1)
    common = w.struct("sock_common", 16, ("skc_dport", port, 96), ("skc_state", number, 64))
    sock = w.struct("sock", 32, ("__sk_common", common, 0), ("sk_drops", number, 128))
    inet = w.struct("inet_sock", 48, ("sk", sock, 0), ("inet_sport", port, 256))
    other = w.struct("other", 32, ("__sk_common", common, 0))
    pointers = [w.type(POINTER, "", each) for each in (sock, inet, other)]
    named = list(zip(("sk", "inet", "other"), pointers, strict=True))
    w.function("tcp_connect", number, *named)
    path = tmp_path / "vmlinux.btf"
    path.write_bytes(w.bytes())
    return fetchc.open(str(path), arch="x86_64").probe("tcp_connect", kernel="6.12")


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("sk->sk_dport", "+12(%di):u16"),
        ("sk->sk_state", "+8(%di):s32"),
        ("sk->sk_drops", "+16(%di):s32"),
        ("inet->inet_dport", "+12(%si):u16"),
        ("inet->inet_sport", "+32(%si):u16"),
        ("inet->sk.sk_dport", "+12(%si):u16"),
    ],
)
def test_members_by_macros(probe: fetchc.Probe, text: str, body: str) -> None:
    assert probe.compile(text).fetcharg == body


@pytest.mark.parametrize("text", ["sk->sk_none", "sk->inet_dport", "other->sk_dport"])
def test_what_is_no_macro(probe: fetchc.Probe, text: str) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile(text).fetcharg  # noqa: B018
    assert refused.value.diagnostics[0].code == "FC0302"
