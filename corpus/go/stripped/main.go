// Stripped is built without debug information and symbols: its functions are known by the table that
// tracebacks are printed by, its types by the run time's descriptors. It prints before each call
//
//	EVENT <function> {"<expression>": <value>, ...}
//
// with expressions that name no variable: parameters by number, cast to a type.
//
// It must build with every Go from 1.15 on.
package main

// Types; Question is at offset 40 of Msg, as in the package dns.

type Header struct {
	Id       uint16
	Response bool
	Opcode   int
	flags    [5]bool
	Rcode    int
}

type Question struct {
	Name   string
	Qtype  uint16
	Qclass uint16
}

type record interface{ title() string }

type address struct {
	name  string
	bytes [4]byte
}

func (a *address) title() string { return a.name }

type Msg struct {
	Header
	compress bool
	Question []Question
	answer   []record
	extra    map[string]int
	queue    chan int16
	next     *Msg
	ratio    float64
	any      interface{}
	run      func(int) string
}

type writer interface{ write(m *Msg) int }

type conn struct {
	peer string
	sent int
}

//go:noinline
func (c *conn) write(m *Msg) int { c.sent += len(m.Question); return c.sent }

var sink interface{} // what goes there has a descriptor

type server struct {
	name  string
	calls int32
}

// handle has a receiver in one word, an interface in two, a pointer in the fourth.
//
//go:noinline
func (s *server) handle(w writer, m *Msg) int {
	s.calls++
	return w.write(m) + len(m.answer) + int(m.Id)
}

// find returns through one of several instructions.
//
//go:noinline
func find(questions []Question, name string) (int, string) {
	for i := range questions {
		if questions[i].Name == name {
			return i, questions[i].Name
		}
	}
	if len(name) > 100 {
		panic(name)
	}
	return -1, ""
}

func (s *server) call(w writer, m *Msg) {
	fields := []string{
		text("(*main.server)($arg1).name", s.name),
		num("(*main.server)($arg1).calls", int64(s.calls)),
		num("(*server)($arg1).calls", int64(s.calls)),
		text("(*main.conn)($arg3).peer", w.(*conn).peer),
		num("(*main.Msg)($arg4).Id", int64(m.Id)),
		num("(*main.Msg)($arg4).Header.Rcode", int64(m.Rcode)),
		flag("(*main.Msg)($arg4).Response", m.Response),
		flag("(*main.Msg)($arg4).flags[3]", m.flags[3]),
		num("len((*main.Msg)($arg4).Question)", int64(len(m.Question))),
		num("cap((*main.Msg)($arg4).Question)", int64(cap(m.Question))),
		text("(*main.Msg)($arg4).Question[0].Name", m.Question[0].Name),
		num("(*Msg)($arg4)->Question[0].Qtype", int64(m.Question[0].Qtype)),
		num("len((*main.Msg)($arg4).answer)", int64(len(m.answer))),
		num("len((*main.Msg)($arg4).extra)", int64(len(m.extra))),
		num("len((*main.Msg)($arg4).queue)", int64(len(m.queue))),
		num("cap((*main.Msg)($arg4).queue)", int64(cap(m.queue))),
		real("(*main.Msg)($arg4).ratio", m.ratio, 64),
		text("(*main.Msg)($arg4).next.Question[0].Name", m.next.Question[0].Name),
		text("(*main.Msg)($arg4).answer[0].(*main.address).name", m.answer[0].(*address).name),
		num("(*main.Msg)($arg4).answer[0].(*address).bytes[2]", int64(m.answer[0].(*address).bytes[2])),
		text("(*main.Msg)($arg4).any.(main.Question).Name", m.any.(Question).Name),
		num("sizeof(main.Question)", 24),
		num("(*(*[]main.Question)(&(*main.Msg)($arg4).Question))[1].Qclass", int64(m.Question[1].Qclass)),
	}
	event("main.(*server).handle", fields...)
	s.handle(w, m)
}

func callFind(questions []Question, name string) {
	event("main.find",
		text("(*main.Question)($arg1).Name", questions[0].Name),
		num("$arg2", int64(len(questions))),
		num("(*[2]main.Question)($arg1)[1].Qtype", int64(questions[1].Qtype)),
		num("$arg5", int64(len(name))),
	)
	find(questions, name)
}

func main() {
	s := &server{name: "stripped", calls: 6}
	sink = s
	var c writer = &conn{peer: "192.0.2.7"}
	last := &Msg{Question: []Question{{"tail.example.net", 1, 1}}}
	for i := 0; i < 3; i++ {
		questions := make([]Question, 2, 3+i)
		questions[0] = Question{"www.example.com"[4*i:], uint16(28 + i), 1}
		questions[1] = Question{"", 15, uint16(254 + i)}
		m := &Msg{
			Header:   Header{Id: uint16(500 + i), Response: i == 1, Rcode: -i},
			Question: questions,
			answer:   []record{&address{"ns" + digits(int64(i)), [4]byte{10, 0, byte(i), 1}}},
			extra:    map[string]int{},
			queue:    make(chan int16, 4+i),
			next:     last,
			ratio:    float64(i) / 4,
			any:      questions[0],
		}
		m.flags[3] = i == 2
		for j := 0; j < i; j++ {
			m.extra[digits(int64(j))] = j
			m.queue <- int16(j)
		}
		s.call(c, m)
		callFind(questions, "example.com")
	}
}
