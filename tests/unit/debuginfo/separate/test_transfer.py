"""Downloads from servers that are slow, gone or hostile."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event
from urllib.error import HTTPError
from urllib.request import Request

import pytest

from fetchc.debuginfo.separate import debuginfod
from fetchc.debuginfo.separate.debuginfod import Limits, Unavailable, download
from tests.support.web import Answer, send, serving

SHORT = Limits(0.4, 0.0, 1 << 20)  # for who sends nothing: what comes may take its time
PATIENT = Limits(60.0, 0.0, 1 << 20)
OVER = Event()  # the test is, whatever the client waits for


@pytest.fixture(autouse=True)
def _over() -> Iterator[None]:
    OVER.clear()
    yield
    OVER.set()


def fetched(answer: Answer, limits: Limits = PATIENT) -> bytes:
    file = io.BytesIO()
    with serving(answer) as url:
        download(f"{url}/x", file, limits)
    return file.getvalue()


def refusal(answer: Answer, limits: Limits = PATIENT) -> Unavailable:
    with pytest.raises(Unavailable) as refused:
        fetched(answer, limits)
    return refused.value


def drip(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    while not OVER.wait(0.05):
        request.wfile.write(b"x")


def drip_headers(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"HTTP/1.0 200 OK\r\nX-Slow: ")
    while not OVER.wait(0.05):
        request.wfile.write(b"x")


def endless(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    while True:
        request.wfile.write(bytes(1 << 16))


def silent(request: BaseHTTPRequestHandler) -> None:
    OVER.wait()


def nonsense(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"220 mail.example ESMTP\r\n")


def test_what_is_there_comes_whole() -> None:
    assert fetched(send(b"abc" * 1000)) == b"abc" * 1000
    assert fetched(send(b"")) == b""


def test_what_is_not_there() -> None:
    assert refusal(send(b"no", 404)).absent
    broken = refusal(send(b"no", 500))
    assert not broken.absent
    assert str(broken) == "HTTP 500 Internal Server Error"


@pytest.mark.parametrize("answer", [drip, drip_headers, silent])
def test_a_server_that_is_slow_is_left(answer: Answer) -> None:
    said = str(refusal(answer, SHORT))
    assert said in ("less than 100 KB in 0.4 s", "timed out")


def test_the_time_of_a_whole_download_is_limited() -> None:
    limits = Limits(60.0, 0.4, 1 << 20)
    assert str(refusal(drip, limits)) == "not there after 0.4 s"


def test_a_body_without_end_is_left() -> None:
    said = "no answer of a server: longer than 1048576 bytes (DEBUGINFOD_MAXSIZE)"
    assert str(refusal(endless)) == said
    assert str(refusal(send(b"x", length=1 << 40))) == said


def test_a_body_that_is_cut_off_is_none() -> None:
    assert str(refusal(send(b"abc", length=5))).endswith("it ends after 3 of 5 bytes")


def test_what_is_no_answer() -> None:
    assert str(refusal(nonsense)).startswith("no answer of a server: ")


@pytest.mark.parametrize("place", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x"])
def test_no_way_leads_to_files(place: str) -> None:
    said = str(refusal(send(b"", 302, Location=place)))
    assert said.startswith("HTTP 302")
    assert place in said


def test_other_servers_may_be_pointed_at_but_not_for_ever() -> None:
    with serving(send(b"moved")) as other:
        assert fetched(send(b"", 302, Location=other + "/y")) == b"moved"
    assert "HTTP 302" in str(refusal(send(b"", 302, Location="/x")))


def test_encryption_is_not_given_up_on_the_way() -> None:
    request, there = Request("https://a.example/x"), "http://a.example/x"
    follow = debuginfod._Redirects().redirect_request
    with pytest.raises(HTTPError, match="redirects to http://") as refused:
        follow(request, io.BytesIO(), 302, "", HTTPMessage(), there)
    refused.value.close()
    followed = follow(request, io.BytesIO(), 302, "", HTTPMessage(), "https://b.example/x")
    assert followed is not None


def test_nobody_listens() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match="Connection refused"):
            download(f"http://127.0.0.1:{port}/x", io.BytesIO(), PATIENT)
    for url in ("http://[/x", "http://127.0.0.1:port/x", "http://no such host/"):
        with pytest.raises(Unavailable):
            download(url, io.BytesIO(), PATIENT)


def test_a_disk_that_is_full_is_distinguished() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    with (
        serving(send(bytes(1 << 17))) as url,
        full.open("wb", buffering=0) as file,
        pytest.raises(OSError, match="No space left"),
    ):
        download(f"{url}/x", file, PATIENT)


def test_progress_is_reported_to_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debuginfod, "_FIRST", 0.0)
    monkeypatch.setattr(debuginfod, "_EACH", 600.0)
    reported = Event()

    def slow(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "2000000")
        request.end_headers()
        request.wfile.write(bytes(1_000_000))
        reported.wait()
        request.wfile.write(bytes(1_000_000))

    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        reported.set()

    with serving(slow) as url:
        download(f"{url}/x", io.BytesIO(), Limits(60.0, 0.0, 1 << 22), say)
    assert len(said) == 1
    assert said[0].startswith(f"downloading {url}/x: ")
    assert said[0].endswith(" MB")


def test_limits_are_what_the_environment_says() -> None:
    assert Limits.of({}) == Limits(90.0, 0.0, 4 << 30)
    said = {
        "DEBUGINFOD_TIMEOUT": "3", "DEBUGINFOD_MAXTIME": "5", "DEBUGINFOD_MAXSIZE": "7",
    }  # fmt: skip
    assert Limits.of(said) == Limits(3.0, 5.0, 7)
    assert (
        Limits.of(dict.fromkeys(said, "-1")) == Limits.of(dict.fromkeys(said, "soon")) == Limits()
    )
