// Features shows what Go adds to functions: several results, panics, interfaces, closures,
// generics, maps and channels, goroutines. It prints before each call
//
//	EVENT <function> {"<expression>": <value>, ...}
//
// and after it the same of <function>%return, with the values the expressions have there.
//
// It must build with every Go from 1.15 on (generic.go from 1.18).
package main

import "errors"

// Results.

type store struct {
	values map[string]int
	hits   int32
}

var errMissing = errors.New("no such key")

// get names its results.
//
//go:noinline
func (s *store) get(key string) (value int, found bool, err error) {
	s.hits++
	value, found = s.values[key]
	if !found {
		return -1, false, errMissing
	}
	return value, true, nil
}

// fail returns an interface.
//
//go:noinline
func (s *store) fail(why string) (int, error) {
	return len(why), &wrapped{why, errMissing}
}

// split has results without names: a slice, a number, a string.
//
//go:noinline
func split(text string, at int) ([]byte, int, string) {
	if at > len(text) {
		return nil, -1, ""
	}
	return []byte(text[:at]), len(text) - at, text[at:]
}

type packet struct {
	words [6]int32
	label string
}

// wide returns an array, which is no matter of registers, beside a number that is.
//
//go:noinline
func wide(n int) (packet, int16) {
	p := packet{label: "packet " + digits(int64(n))}
	for i := range p.words {
		p.words[i] = int32(i - n)
	}
	return p, int16(-n)
}

// half returns a number that no probe can read where it is in a vector register.
//
//go:noinline
func half(n int32) (float64, uint8) { return float64(n) / 2, uint8(n & 1) }

// guarded recovers: then it returns by its last return instruction.
//
//go:noinline
func guarded(n int) (sum int, reason string) {
	defer func() {
		if seen := recover(); seen != nil {
			sum, reason = -n, seen.(string)
		}
	}()
	return risky(n), "fine"
}

// risky panics: such a call ends without a return.
//
//go:noinline
func risky(n int) int {
	if n > 1 {
		panic("n is " + digits(int64(n)))
	}
	return 10 * n
}

// hidden has parameters and results without a name.
//
//go:noinline
func hidden(_ int16, n int, _ string) (_ int, text string) { return n, digits(int64(n)) }

// forever has no way out.
//
//go:noinline
func forever(tick chan int) {
	for n := range tick {
		panic(n)
	}
	select {}
}

// Interfaces.

type shape interface{ area() int }

type square struct {
	side  int
	label string
}

type circle struct {
	radius int32
	name   string
}

type weight uint16

// holder is one pointer, so that an interface holds it and not a copy.
type holder struct{ inner *circle }

func (s square) area() int  { return s.side * s.side }
func (c *circle) area() int { return int(3 * c.radius * c.radius) }
func (w weight) area() int  { return int(w) }
func (h holder) area() int  { return h.inner.area() }

type wrapped struct {
	text  string
	inner error
}

func (w *wrapped) Error() string { return w.text + ": " + w.inner.Error() }

// measure is given a structure, a number and an error.
//
//go:noinline
func measure(s shape, v interface{}, err error) int { return s.area() + len(err.Error()) }

// survey is given a pointer, a structure that is one, a text and a named number.
//
//go:noinline
func survey(s shape, h interface{}, v interface{}, w shape) int { return s.area() + w.area() }

// Maps and channels.

type set map[uint16]struct{}

// count has maps and channels of several kinds, nil ones too.
//
//go:noinline
func count(m map[string]int, s set, none map[int]bool, c chan string, d <-chan int8) int {
	return len(m) + len(s) + len(none) + len(c) + len(d)
}

// Closures.

type machine struct{ speed, turns int }

// turn is called as a method value, too.
//
//go:noinline
func (m *machine) turn(by int) int { m.turns += by; return m.turns * m.speed }

// adders returns closures over a copy, and over a variable that they share.
//
//go:noinline
func adders(base int, label string) (func(int) int, func(string) int) {
	total := base
	add := func(step int) int {
		total += step + base
		return total
	}
	name := func(more string) int { return len(label) + len(more) }
	return add, name
}

// later runs a deferred closure, and one in a goroutine of its own.
//
//go:noinline
func later(done chan int, n int) {
	defer func(step int) { done <- step + n }(n + 1)
	go func(step int) { done <- step * n }(n + 2)
}

func main() {
	go forever(make(chan int))
	for round := 0; round < 3; round++ {
		callResults(round)
		callInterfaces(round)
		callMaps(round)
		callClosures(round)
		callGenerics(round)
	}
}
