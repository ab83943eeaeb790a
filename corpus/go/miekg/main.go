// Miekg is the program dnsforward with the real package github.com/miekg/dns:
// the handler is called directly with a dns.Msg, without sockets.
//
// Event lines as in dnsforward.
package main

import (
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

type server struct {
	name string
	seen map[string]int
	last *dns.Msg
	edns *dns.EDNS0_NSID
}

// writer is a dns.ResponseWriter that keeps what it is given.
type writer struct{ sent *dns.Msg }

func (w *writer) LocalAddr() net.Addr         { return nil }
func (w *writer) RemoteAddr() net.Addr        { return nil }
func (w *writer) WriteMsg(m *dns.Msg) error   { w.sent = m; return nil }
func (w *writer) Write(b []byte) (int, error) { return len(b), nil }
func (w *writer) Close() error                { return nil }
func (w *writer) TsigStatus() error           { return nil }
func (w *writer) TsigTimersOnly(bool)         {}
func (w *writer) Hijack()                     {}

//go:noinline
func (s *server) handleRequest(w dns.ResponseWriter, r *dns.Msg) {
	s.last = r
	s.seen[r.Question[0].Name]++
	_ = w.WriteMsg(r)
}

//go:noinline
func (s *server) answer(a *dns.A, mx dns.MX, q dns.Question) int {
	return len(a.A) + int(mx.Preference) + int(q.Qtype)
}

func num(expression string, value int) string {
	return strconv.Quote(expression) + ": " + strconv.Itoa(value)
}

func text(expression, value string) string {
	return strconv.Quote(expression) + ": " + strconv.Quote(value)
}

func flag(expression string, value bool) string {
	return strconv.Quote(expression) + ": " + strconv.FormatBool(value)
}

func event(function string, fields ...string) {
	os.Stdout.WriteString("EVENT " + function + " {" + strings.Join(fields, ", ") + "}\n")
}

func main() {
	for round := 0; round < 3; round++ {
		s := &server{name: "miekg" + strconv.Itoa(round), seen: map[string]int{}}
		r := &dns.Msg{Compress: round == 1}
		r.Id = uint16(65530 + round)
		r.RecursionDesired = round == 2
		r.Opcode = dns.OpcodeNotify
		r.Rcode = dns.RcodeRefused
		r.Question = []dns.Question{
			{Name: "host" + strconv.Itoa(round) + ".example.org.", Qtype: dns.TypeAAAA, Qclass: dns.ClassINET},
			{Name: "second.example.net.", Qtype: uint16(round), Qclass: dns.ClassANY},
		}
		event("main.(*server).handleRequest",
			text("r->Question[0].Name", r.Question[0].Name),
			num("r->Question[0].Qtype", int(r.Question[0].Qtype)),
			text("r->Question[1].Name", r.Question[1].Name),
			num("r->Question[1].Qtype", int(r.Question[1].Qtype)),
			num("r->Question[1].Qclass", int(r.Question[1].Qclass)),
			num("len(r->Question)", len(r.Question)),
			num("len(r->Question[0].Name)", len(r.Question[0].Name)),
			num("r->Id", int(r.Id)),
			num("r->MsgHdr.Opcode", int(r.Opcode)),
			flag("r->RecursionDesired", r.RecursionDesired),
			num("r->Rcode", int(r.Rcode)),
			flag("r->Compress", r.Compress),
			num("len(r->Answer)", len(r.Answer)),
			text("s->name", s.name),
			num("len(s->seen)", len(s.seen)),
		)
		s.handleRequest(&writer{}, r)

		a := &dns.A{Hdr: dns.RR_Header{Name: "a.example.org.", Ttl: uint32(3600 + round)},
			A: net.IP{192, 0, 2, byte(round)}}
		mx := dns.MX{Hdr: dns.RR_Header{Name: "mx.example.org.", Rrtype: dns.TypeMX},
			Preference: uint16(10 * round), Mx: "mail.example.org."}
		event("main.(*server).answer",
			text("a->Hdr.Name", a.Hdr.Name),
			num("a->Hdr.Ttl", int(a.Hdr.Ttl)),
			num("a->A[3]", int(a.A[3])),
			num("len(a->A)", len(a.A)),
			text("mx.Hdr.Name", mx.Hdr.Name),
			num("mx.Hdr.Rrtype", int(mx.Hdr.Rrtype)),
			num("mx.Preference", int(mx.Preference)),
			text("mx.Mx", mx.Mx),
			text("q.Name", r.Question[1].Name),
			num("q.Qtype", int(r.Question[1].Qtype)),
			num("s->last->Id", int(s.last.Id)),
			num("len(s->seen)", len(s.seen)),
		)
		s.answer(a, mx, r.Question[1])
	}
}
