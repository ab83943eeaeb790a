// Dnsforward is the program of the write-up about perf probe that this project
// grew from, in our own words: a server whose method handleRequest receives a
// *Msg. It needs no network, makes a fixed number of calls and ends.
//
// Before each call of a function worth probing it prints
//
//	EVENT <function> {"<expression>": <value>, ...}
//
// with the values those expressions have at the entry of that call. A live test
// compiles every expression, probes the function and compares. So the list of
// expressions is this program's output, and nowhere else.
//
// It must build with every Go from 1.15 on (generic.go from 1.18).
package main

// Types of the messages; names, order and sizes as in the package dns, so that
// Question is at offset 40 of Msg.

type Opcode int

type MsgHdr struct {
	Id                 uint16
	Response           bool
	Opcode             Opcode
	Authoritative      bool
	Truncated          bool
	RecursionDesired   bool
	RecursionAvailable bool
	Zero               bool
	AuthenticatedData  bool
	CheckingDisabled   bool
	Rcode              int
}

type Question struct {
	Name   string
	Qtype  uint16
	Qclass uint16
}

type RR interface{ Header() *RRHeader }

type RRHeader struct {
	Name string
	TTL  uint32
}

type A struct {
	Hdr  RRHeader
	Addr [4]byte
}

func (a *A) Header() *RRHeader { return &a.Hdr }

type Msg struct {
	MsgHdr
	Compress bool
	Question []Question
	Answer   []RR
	Ns       []RR
	Extra    []RR
}

type ResponseWriter interface {
	WriteMsg(m *Msg) error
	Peer() string
}

type conn struct {
	peer string
	sent int
}

func (c *conn) WriteMsg(m *Msg) error { c.sent += len(m.Question); return nil }
func (c *conn) Peer() string          { return c.peer }

// Types of the server: one of each kind of member.

type transit int8

const (
	direct transit = iota - 1
	viaProxy
	viaTunnel
)

type limits struct {
	Rate   uint32
	Window int64
}

type stats struct {
	Served uint64
	Failed int32
	last   *Question
}

type upstream struct {
	addr   string
	weight int16
	next   *upstream
}

type server struct {
	name      string
	limits    // embedded by value: promoted Rate, Window
	*stats    // embedded by pointer: promoted Served, Failed
	mode      transit
	up        bool
	mask      uint8
	mark      rune
	low       int8
	high      uint64
	ratio     float32
	ratios    [3]float64
	grid      [2][3]int16
	label     [4]byte
	pair      [2]string
	aliases   []string
	zones     [][]string
	upstreams []*upstream
	byValue   []upstream
	cache     map[string]int
	queue     chan int
	index     *[3]int32
	inner     struct{ a, b int32 }
}

var (
	verbose   bool
	version   = "0.9"
	counters  [4]int64
	theServer *server
	levels    []uint16
	zero      limits
)

// handleRequest is the function of the write-up. With the stack convention its
// receiver is at +8(%sp), w at +16 and +24, r at +32.
//
//go:noinline
func (s *server) handleRequest(w ResponseWriter, r *Msg) {
	s.Served++
	s.last = &r.Question[0]
	_ = w.WriteMsg(r)
}

// forward takes a structure by value: three or four registers, or the stack.
//
//go:noinline
func (s *server) forward(q Question, depth int8, final bool) int {
	if final {
		return len(q.Name)
	}
	return int(depth) + int(q.Qtype)
}

// describe has a receiver by value.
//
//go:noinline
func (q Question) describe(prefix string) string { return prefix + q.Name }

// ten has one parameter more than there are integer registers.
//
//go:noinline
func ten(a int, b int8, c uint16, d int32, e bool, f *int, g, h, i int64, j int32) int64 {
	return int64(a) + int64(b) + int64(c) + int64(d) + int64(*f) + g + h + i + int64(j)
}

// spread fills the registers with its first four parameters, so the rest is on the stack.
//
//go:noinline
func spread(name string, data []byte, any interface{}, n int, more string, last int32) int {
	return len(name) + len(data) + n + len(more) + int(last)
}

type packet struct {
	words [6]int32
	text  string
	tail  uint16
}

// bulky has a parameter that never fits in registers, and a smaller one behind it that does.
//
//go:noinline
func bulky(p packet, after int) int { return int(p.words[5]) + len(p.text) + after }

type point struct{ x, y float64 }

// floats mixes the two register files.
//
//go:noinline
func floats(n int, f float64, k int32, p *point, g float32) float64 {
	return float64(n) + f + float64(k) + p.x + float64(g)
}

// blanks has parameters without a name, which take their places all the same.
//
//go:noinline
func blanks(_ int, b string, _ []byte, d int) int { return len(b) + d }

// tiny mixes widths and holds nothing to align them but the rules.
//
//go:noinline
func tiny(a int8, one [1]int16, none struct{}, two [2]int8, z uint32) int {
	return int(a) + int(one[0]) + int(two[1]) + int(z)
}

// counter returns a closure; its body is a function of its own.
//
//go:noinline
func counter(start int) func(step int, why string) int {
	total := start
	return func(step int, why string) int {
		total += step + len(why)
		return total
	}
}

// burn calls itself with a frame of two kilobytes, so that a new goroutine's
// stack grows several times: a probe on the very first instruction then counts
// some calls twice.
//
//go:noinline
func burn(depth int, r *Msg) byte {
	var frame [2048]byte
	frame[depth] = byte(r.Id)
	if depth > 0 {
		return frame[depth] + burn(depth-1, r)
	}
	return frame[0]
}

func newServer(round int) *server {
	first := &upstream{addr: "192.0.2.1:53", weight: int16(-7 - round)}
	second := &upstream{addr: "[2001:db8::1]:853", weight: 300, next: first}
	s := &server{
		name:      "forward-" + digits(int64(round)),
		limits:    limits{Rate: 4000000000 + uint32(round), Window: -86400},
		stats:     &stats{Served: uint64(round), Failed: int32(-round)},
		mode:      transit(round - 1),
		up:        round%2 == 0,
		mask:      0xf0 | uint8(round),
		mark:      'é',
		low:       -128,
		high:      1<<64 - 1 - uint64(round),
		ratio:     0.25 + float32(round),
		ratios:    [3]float64{0.5, -1.75, 1e300},
		grid:      [2][3]int16{{1, -2, 3}, {-32768, 32767, int16(round)}},
		label:     [4]byte{'d', 'n', 's', byte('0' + round)},
		pair:      [2]string{"left", "right" + digits(int64(round))},
		aliases:   []string{"localhost", "", "bücher.example."},
		zones:     [][]string{{"com."}, {"org.", "net.", "example." + digits(int64(round))}},
		upstreams: []*upstream{first, second},
		byValue:   []upstream{{addr: "zero"}, {addr: "one", weight: 11, next: second}},
		cache:     map[string]int{},
		queue:     make(chan int, 8),
		index:     &[3]int32{10, -20, int32(30 + round)},
	}
	s.inner.a, s.inner.b = int32(round), -1
	for i := 0; i <= round; i++ {
		s.cache[digits(int64(i))] = i
		s.queue <- i
	}
	return s
}

func newMsg(round int) *Msg {
	m := &Msg{Compress: round != 1}
	m.Id = uint16(65530 + round)
	m.Response = round == 2
	m.Opcode = Opcode(round * 2)
	m.RecursionDesired = true
	m.CheckingDisabled = round == 1
	m.Rcode = -round
	m.Question = append(make([]Question, 0, 4),
		Question{"host" + digits(int64(round)) + ".example.org.", 1, 255},
		Question{"second.example.net.", uint16(28 + round), 1})
	for i := 0; i < round; i++ {
		m.Answer = append(m.Answer, &A{Hdr: RRHeader{"a.", 60}, Addr: [4]byte{192, 0, 2, byte(i)}})
	}
	return m
}

func main() {
	for round := 0; round < 3; round++ {
		s, m, w := newServer(round), newMsg(round), &conn{peer: "198.51.100.7:4242"}
		verbose = round == 1
		version = "1." + digits(int64(round))
		counters[2] = int64(round) - 5
		theServer = s
		levels = []uint16{7, uint16(round), 65535}
		reportRequest(s, m)
		s.handleRequest(w, m)
		callOthers(s, m, round)
		callGenerics(round)
	}
	growStack(newMsg(1))
}

func growStack(m *Msg) {
	for depth := 40; depth >= 0; depth-- {
		event("main.burn", num("depth", int64(depth)), num("r.Id", int64(m.Id)),
			text("r->Question[0].Name", m.Question[0].Name))
	}
	done := make(chan byte)
	go func() { done <- burn(40, m) }()
	<-done
}
