package main

import (
	"strconv"
	"syscall"
)

// The event lines are put together by hand: fmt and encoding/json would make
// every fixture half a megabyte bigger.

func digits(n int64) string { return strconv.FormatInt(n, 10) }

func key(expression, value string) string { return strconv.Quote(expression) + ": " + value }

func num(expression string, value int64) string { return key(expression, digits(value)) }

func unum(expression string, value uint64) string {
	return key(expression, strconv.FormatUint(value, 10))
}

func real(expression string, value float64, bits int) string {
	return key(expression, strconv.FormatFloat(value, 'g', -1, bits))
}

func text(expression, value string) string { return key(expression, strconv.Quote(value)) }

func flag(expression string, value bool) string {
	return key(expression, strconv.FormatBool(value))
}

func list(expression string, values ...int64) string {
	all := ""
	for i, value := range values {
		if i > 0 {
			all += ", "
		}
		all += digits(value)
	}
	return key(expression, "["+all+"]")
}

func event(function string, fields ...string) {
	line := "EVENT " + function + " {"
	for i, field := range fields {
		if i > 0 {
			line += ", "
		}
		line += field
	}
	line += "}\n"
	for len(line) > 0 {
		n, err := syscall.Write(1, []byte(line))
		if err != nil {
			syscall.Exit(1)
		}
		line = line[n:]
	}
}

func reportRequest(s *server, r *Msg) {
	event("main.(*server).handleRequest",
		// the message: the write-up's expression first
		text("r->Question[0].Name", r.Question[0].Name),
		num("r->Question[0].Qtype", int64(r.Question[0].Qtype)),
		num("r.Question[0].Qclass", int64(r.Question[0].Qclass)),
		text("r->Question[1].Name", r.Question[1].Name),
		num("r->Question[1].Qtype", int64(r.Question[1].Qtype)),
		num("r.Question[1].Qclass", int64(r.Question[1].Qclass)),
		num("len(r->Question)", int64(len(r.Question))),
		num("cap(r->Question)", int64(cap(r.Question))),
		num("len(r->Question[1].Name)", int64(len(r.Question[1].Name))),
		num("r->Id", int64(r.Id)),
		num("r->MsgHdr.Id", int64(r.MsgHdr.Id)),
		flag("r->Response", r.Response),
		num("r->Opcode", int64(r.Opcode)),
		flag("r->RecursionDesired", r.RecursionDesired),
		flag("r.CheckingDisabled", r.CheckingDisabled),
		num("r->Rcode", int64(r.Rcode)),
		flag("r->Compress", r.Compress),
		num("len(r->Answer)", int64(len(r.Answer))),
		num("len(r->Extra)", int64(len(r.Extra))),
		num("(*r).Id", int64(r.Id)),
		// the receiver
		text("s->name", s.name),
		num("len(s->name)", int64(len(s.name))),
		unum("s->Rate", uint64(s.Rate)),
		num("s->limits.Window", s.Window),
		unum("s->Served", s.Served),
		num("s->stats->Failed", int64(s.Failed)),
		num("s->mode", int64(s.mode)),
		flag("s->up", s.up),
		num("s->mask", int64(s.mask)),
		num("s->mark", int64(s.mark)),
		num("s->low", int64(s.low)),
		unum("s->high", s.high),
		real("s->ratio", float64(s.ratio), 32),
		real("s->ratios[0]", s.ratios[0], 64),
		real("s->ratios[1]", s.ratios[1], 64),
		real("s->ratios[2]", s.ratios[2], 64),
		num("s->grid[0][1]", int64(s.grid[0][1])),
		num("s->grid[1][0]", int64(s.grid[1][0])),
		num("s->grid[1][2]", int64(s.grid[1][2])),
		list("s->grid[1]", int64(s.grid[1][0]), int64(s.grid[1][1]), int64(s.grid[1][2])),
		num("s->label[3]", int64(s.label[3])),
		list("s->label", int64(s.label[0]), int64(s.label[1]), int64(s.label[2]),
			int64(s.label[3])),
		text("s->pair[1]", s.pair[1]),
		text("s->aliases[0]", s.aliases[0]),
		text("s->aliases[1]", s.aliases[1]),
		text("s->aliases[2]", s.aliases[2]),
		text("s->zones[1][2]", s.zones[1][2]),
		num("len(s->zones[1])", int64(len(s.zones[1]))),
		text("s->upstreams[0]->addr", s.upstreams[0].addr),
		num("s->upstreams[0].weight", int64(s.upstreams[0].weight)),
		num("s->upstreams[1]->next->weight", int64(s.upstreams[1].next.weight)),
		text("s->byValue[1].addr", s.byValue[1].addr),
		num("s->byValue[1].weight", int64(s.byValue[1].weight)),
		text("s->byValue[1].next->next->addr", s.byValue[1].next.next.addr),
		num("len(s->cache)", int64(len(s.cache))),
		num("len(s->queue)", int64(len(s.queue))),
		num("cap(s->queue)", int64(cap(s.queue))),
		num("s->index[1]", int64(s.index[1])),
		num("(*s->index)[2]", int64(s.index[2])),
		num("s->inner.a", int64(s.inner.a)),
		num("s->inner.b", int64(s.inner.b)),
		// variables of the package, with and without its name
		flag("verbose", verbose),
		flag("main.verbose", verbose),
		text("main.version", version),
		num("counters[2]", counters[2]),
		text("main.theServer->name", theServer.name),
		num("levels[2]", int64(levels[2])),
		num("len(levels)", int64(len(levels))),
	)
}

func callOthers(s *server, m *Msg, round int) {
	q, depth, final := m.Question[1], int8(-3-round), round == 1
	event("main.(*server).forward", text("q.Name", q.Name), num("len(q.Name)", int64(len(q.Name))),
		num("q.Qtype", int64(q.Qtype)), num("q.Qclass", int64(q.Qclass)),
		num("depth", int64(depth)), flag("final", final), text("s->name", s.name))
	s.forward(q, depth, final)

	event("main.Question.describe", text("q.Name", q.Name), num("q.Qtype", int64(q.Qtype)),
		num("q.Qclass", int64(q.Qclass)), text("prefix", "query "))
	q.describe("query ")

	f := 1000 + round
	event("main.ten", num("a", -1), num("b", -2), num("c", 65533), num("d", int64(-4-round)),
		flag("e", round == 0), num("*f", int64(f)), num("g", -7), num("h", 8<<40),
		num("i", int64(round)), num("j", int64(-10*round)))
	ten(-1, -2, 65533, int32(-4-round), round == 0, &f, -7, 8<<40, int64(round), int32(-10*round))

	data := []byte{1, 200, byte(round)}
	event("main.spread", text("name", s.name), num("len(name)", int64(len(s.name))),
		num("len(data)", 3), num("cap(data)", int64(cap(data))), num("data[1]", 200),
		num("data[2]", int64(round)), num("n", int64(round)), text("more", s.pair[1]),
		num("len(more)", int64(len(s.pair[1]))), num("last", int64(-round)))
	spread(s.name, data, s, round, s.pair[1], int32(-round))

	p := packet{words: [6]int32{1, -2, 3, -4, 5, int32(-6 - round)}, text: s.name, tail: 65000}
	event("main.bulky", num("p.words[0]", 1), num("p.words[1]", -2),
		num("p.words[5]", int64(p.words[5])), list("p.words", 1, -2, 3, -4, 5, int64(p.words[5])),
		text("p.text", p.text), num("len(p.text)", int64(len(p.text))), num("p.tail", 65000),
		num("after", int64(round)))
	bulky(p, round)

	at := &point{0.125, float64(round) - 0.5}
	event("main.floats", num("n", int64(round)), real("f", 2.5*float64(round), 64), num("k", -9),
		real("p->x", at.x, 64), real("p->y", at.y, 64), real("g", 0.5, 32))
	floats(round, 2.5*float64(round), -9, at, 0.5)

	event("main.blanks", text("b", s.name), num("len(b)", int64(len(s.name))),
		num("d", int64(round)))
	blanks(3, s.name, data, round)

	event("main.tiny", num("a", -1), num("one[0]", int64(-300-round)), num("two[0]", -5),
		num("two[1]", int64(round)), unum("z", 4000000000))
	tiny(-1, [1]int16{int16(-300 - round)}, struct{}{}, [2]int8{-5, int8(round)}, 4000000000)

	event("main.counter", num("start", int64(round)))
	count := counter(round)
	event("main.counter.func1", num("step", int64(2*round)), text("why", "because"))
	count(2*round, "because")
}
