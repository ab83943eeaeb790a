"""Times, durations, addresses and identifiers of Go are shown as the program itself prints them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fetchc
from fetchc.tracer.display_values import printed
from tests.live.watching import watched
from tests.support.toolchains import GO_VERSIONS, go_environment, go_root, require
from tests.support.tracefs import require_uprobes

if TYPE_CHECKING:
    from fetchc.tracer.events import Value

pytestmark = pytest.mark.live

UUID = """package uuid

import "fmt"

type UUID [16]byte

func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
"""
SOURCE = """package main

import (
	"encoding/json"
	"math/rand"
	"net"
	"os"
	"time"

	"github.com/google/uuid"
)

// Lookalikes: Go prints none of them in that form.
type Time time.Time
type Duration int64
type IP []byte
type UUID [16]byte

type like struct {
	Time Time
	Duration Duration
	IP IP
	UUID UUID
}

type record struct {
	When time.Time
	Spans []time.Duration
	Hosts []net.IP
	Key uuid.UUID
	Like like
}

//go:noinline
func report(t time.Time, d time.Duration, ip net.IP, k uuid.UUID, r *record) int {
	return t.Nanosecond() + int(d) + len(ip) + int(k[0]) + len(r.Spans) + int(d>>3)
}

//go:noinline
func results(r *record, n int) (time.Time, time.Duration) { return r.When, time.Duration(n) }

func text(t time.Time) string {
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func main() {
	random := rand.New(rand.NewSource(7))
	zone := time.FixedZone("east", 5*3600)
	times := []time.Time{{}, time.Now(), time.Now().UTC(), time.Now().In(zone), time.Unix(0, 1),
		time.Date(1884, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2024, 2, 29, 1, 2, 3, 40000000, zone), time.Now().Add(200*365*24*time.Hour)}
	spans := []time.Duration{0, 1, 999, 1000, 1500, 999999, 1000000, 1500000000, 60e9, 3600e9, -1,
		-90e9, -1 << 63, 1<<63 - 1, 3661e9 + 5}
	hosts := []net.IP{nil, {}, net.IPv4(1, 2, 3, 4), net.IPv4(10, 0, 0, 255).To4(),
		net.ParseIP("::"), net.ParseIP("::1"), net.ParseIP("2001:db8:0:0:1:0:0:1"),
		net.ParseIP("fe80::1:0:0:2"),
		net.ParseIP("1:0:3:4:5:6:7:8"), {1, 2, 3}, make(net.IP, 17)}
	for n := 0; n < 60; n++ {
		host := make(net.IP, 16)
		for i := range host {
			if random.Intn(3) > 0 {
				host[i] = byte(random.Intn(256)) * byte(random.Intn(2))
			}
		}
		times = append(times, time.Unix(random.Int63n(200e9)-50e9, random.Int63n(1e9)))
		spans = append(spans, time.Duration(random.Int63()>>uint(random.Intn(63))))
		hosts = append(hosts, host)
	}
	out := json.NewEncoder(os.Stdout)
	for n := 0; n < 75; n++ {
		t, d, ip := times[n%len(times)], spans[n%len(spans)], hosts[n%len(hosts)]
		var key uuid.UUID
		random.Read(key[:])
		others := like{Time(t), Duration(d), IP(ip), UUID(key)}
		r := &record{t, []time.Duration{d, 1e9}, []net.IP{ip}, key, others}
		host := ip.String()
		if len(ip) != 4 && len(ip) != 16 {
			host = ""
		}
		report(t, d, ip, key, r)
		results(r, int(d))
		out.Encode([]string{text(t), d.String(), host, key.String()})
	}
}
"""
ADDRESSES = """package main

import (
	"encoding/json"
	"net/netip"
	"os"
)

//go:noinline
func report(a netip.Addr, p *netip.AddrPort) int { return a.BitLen() + int(p.Port()) }

func main() {
	out := json.NewEncoder(os.Stdout)
	for _, text := range []string{"", "0.0.0.0", "1.2.3.4", "255.255.255.255", "::",
		"::1", "::ffff:1.2.3.4", "2001:db8::1", "fe80::1%eth0", "1:0:0:2:0:0:0:3", "::1.2.3.4",
		"fe80::%a-zone-of-some-more-than-32-bytes-in-it"} {
		var a netip.Addr
		if text != "" {
			a = netip.MustParseAddr(text)
		}
		p := netip.AddrPortFrom(a, 80)
		report(a, &p)
		out.Encode(a.String())
	}
}
"""


def build(version: str, source: str, folder: Path) -> Path:
    require_uprobes()
    require(f"go{version}")
    package = folder / "src/written"
    package.mkdir(parents=True)
    (package / "main.go").write_text(source)
    shared = folder / "src/github.com/google/uuid"
    shared.mkdir(parents=True)
    (shared / "uuid.go").write_text(UUID)
    program = folder / "written-program"
    command = [str(go_root(version) / "bin/go"), "build", "-o", str(program), "written"]
    environment = go_environment(version, folder)
    subprocess.run(command, env=environment, cwd=folder, check=True, timeout=280)
    return program


def member(value: Value, *names: str) -> Value:
    for name in names:
        assert isinstance(value, dict)
        value = value[name]
    return value


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_each_is_what_the_program_prints(version: str, tmp_path: Path) -> None:
    program = build(version, SOURCE, tmp_path)
    opened = fetchc.open(str(program))
    probe, back = opened.probe("main.report"), opened.probe("main.results", returns=True)
    output, events = watched(
        lambda group: [
            probe.plan(["t", "d", "ip", "k", "r=*r", "wall=t.wall", "raw=d:s64"], group, "e"),
            back.plan(["$ret0", "$ret1"], group, "b"),
        ],
        [program],
    )
    expected = [json.loads(line) for line in output.splitlines()]
    entries = [event.args for event in events if event.plan.event == "e"]
    returns = [event.args for event in events if event.plan.event == "b"]
    assert len(expected) == len(entries) == len(returns) == 75
    assert not any(event.faults for event in events)
    other = 0
    for (moment, span, host, key), args, given in zip(expected, entries, returns, strict=True):
        record = args["r"]
        assert printed(args["d"]) == printed(given["$ret1"]) == span
        assert printed(member(record, "Spans")) == f"[{span}, 1s]"
        assert args["d"] == args["raw"] == member(record, "Like", "Duration")
        assert printed(args["raw"]) == str(args["raw"])
        assert args["k"] == member(record, "Key") == key
        for shown in (args["t"], given["$ret0"], member(record, "When")):
            if moment:
                assert shown == moment
            else:
                assert isinstance(shown, dict)
                assert shown["wall"] == args["wall"]
                other += 1
        hosts = member(record, "Hosts")
        assert isinstance(hosts, list)
        for shown in (args["ip"], hosts[0]):
            assert shown == host if host else isinstance(shown, list)
        assert isinstance(member(record, "Like", "Time"), dict)
        assert isinstance(member(record, "Like", "IP"), list)
        assert isinstance(member(record, "Like", "UUID"), list)
    assert 0 < other < 20


@pytest.mark.parametrize("version", [one for one in GO_VERSIONS if one != "1.15"])
def test_addresses_of_every_kind(version: str, tmp_path: Path) -> None:
    program = build(version, ADDRESSES, tmp_path)
    probe = fetchc.open(str(program)).probe("main.report")
    output, events = watched(lambda group: [probe.plan(["a", "p=*p"], group, "e")], [program])
    expected = [json.loads(line) for line in output.splitlines()]
    assert len(expected) == len(events) == 12
    plain = 0
    for text, event in zip(expected, events, strict=True):
        address = event.args["a"]
        assert member(event.args["p"], "ip") == address
        assert not event.faults
        if isinstance(address, dict):  # a name of a zone that is not read to its end
            assert "%a-zone" in text
            plain += 1
        else:
            assert address == text
    assert plain == 1
