"""An HTTP server of Go's own package under load: every request is seen, as the server saw it.

The server and its clients are one program; each request makes goroutines' stacks grow. It tells of
each request what the probes must show, and ends as it does without probes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import fetchc
from fetchc.tracer.events import Event, Plan
from tests.live.watching import watched
from tests.support.go_programs import go_program
from tests.support.toolchains import GO_VERSIONS
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

CLIENTS, EACH = 8, 150
SOURCE = """
package main

import (
	"bufio"
	"fmt"
	"io"
	"io/ioutil"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
)

const clients, each = 8, 150

type app struct {
	mutex sync.Mutex
	out   *bufio.Writer
}

//go:noinline
func deep(n int) int {
	var frame [256]byte
	frame[n%256] = 1
	if n == 0 {
		return 0
	}
	return deep(n-1) + int(frame[n%256])
}

//go:noinline
func (a *app) decide(path string, n int) (status int, err error) {
	grown := deep(n)
	switch {
	case strings.HasPrefix(path, "/missing"):
		return 404, fmt.Errorf("nothing at %s", path)
	case grown != n:
		return 500, nil
	}
	return 200, nil
}

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, err := a.decide(r.URL.Path, len(r.URL.Path)*7%300)
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(status)
	fmt.Fprintln(w, err)
	a.mutex.Lock()
	fmt.Fprintf(a.out, "%s %s %d ", r.Method, r.URL.Path, len(r.Header))
	fmt.Fprintf(a.out, "%s %d\\n", r.RemoteAddr, status)
	a.mutex.Unlock()
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	a := &app{out: bufio.NewWriter(os.Stdout)}
	server := &http.Server{Handler: a, Addr: "loopback"}
	go server.Serve(listener)
	var all sync.WaitGroup
	for c := 0; c < clients; c++ {
		all.Add(1)
		go func(c int) {
			defer all.Done()
			client := &http.Client{Transport: &http.Transport{}}
			for i := 0; i < each; i++ {
				method, path := "GET", fmt.Sprintf("/item/%d/%d", c, i)
				if i%3 == 1 {
					method = "POST"
				}
				if i%5 == 4 {
					path = fmt.Sprintf("/missing/%d/%s", c, strings.Repeat("x", i))
				}
				request, _ := http.NewRequest(method, "http://"+listener.Addr().String()+path, nil)
				for h := 0; h < i%4; h++ {
					request.Header.Set(fmt.Sprintf("X-Number-%d", h), "set")
				}
				answer, err := client.Do(request)
				if err != nil {
					panic(err)
				}
				io.Copy(ioutil.Discard, answer.Body)
				answer.Body.Close()
			}
		}(c)
	}
	all.Wait()
	server.Close()
	a.out.Flush()
}
"""


def plans(program: Path, group: str, status: str) -> list[Plan]:
    opened = fetchc.open(str(program))
    request = ["req.Method", "req.URL.Path", "len(req.Header)", "req.RemoteAddr"]
    served = opened.probe("net/http.serverHandler.ServeHTTP")
    ended = opened.probe("net/http.(*response).finishRequest")
    decided = opened.probe("main.(*app).decide", returns=True)
    written = opened.probe("net/http.(*response).WriteHeader")
    return [
        opened.probe("net/http.(*conn).serve").plan(["c.server.Addr"], group, "conn"),
        served.plan(request, group, "served"),
        ended.plan(["w.status", "w.req.URL.Path", "w.req.Method"], group, "ended"),
        decided.plan([status], group, "decided"),
        written.plan(["code", "w.req.URL.Path"], group, "written"),
    ]


def rows(events: list[Event], name: str, *labels: str) -> Counter[tuple[object, ...]]:
    found = [event for event in events if event.name == name]
    assert not [event.faults for event in found if event.faults]
    return Counter(tuple(event.args[label] for label in labels) for event in found)


@pytest.mark.parametrize("version", GO_VERSIONS)
def test_every_request_is_seen_as_the_server_saw_it(version: str, tmp_path: Path) -> None:
    require_uprobes()
    program = go_program(version, tmp_path, SOURCE, name="served")
    # Go 1.17 lists no results in registers.
    status = "status=%ax:s64" if version == "1.17" else "status"
    output, events = watched(lambda group: plans(program, group, status), [program])
    printed = [line.split(" ") for line in output.splitlines()]
    assert len(printed) == CLIENTS * EACH
    seen = rows(events, "served", "req.Method", "req.URL.Path", "len(req.Header)", "req.RemoteAddr")
    wanted = Counter((m, path, int(n), peer) for m, path, n, peer, _ in printed)
    assert seen == wanted
    ended = rows(events, "ended", "w.status", "w.req.URL.Path", "w.req.Method")
    assert ended == Counter((int(status), path, m) for m, path, _, _, status in printed)
    decided = rows(events, "decided", "status")
    assert decided == Counter((int(line[4]),) for line in printed)
    written = rows(events, "written", "code", "w.req.URL.Path")
    assert written == Counter((int(status), path) for _, path, _, _, status in printed)
    connections = rows(events, "conn", "c.server.Addr")
    assert set(connections) == {("loopback",)}
    assert connections.total() >= CLIENTS
    peers = {line[3] for line in printed}
    assert connections.total() >= len(peers)
