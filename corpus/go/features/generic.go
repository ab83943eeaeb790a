//go:build go1.18
// +build go1.18

package main

// Stack is generic: one body serves all types of one shape.
type Stack[T any] struct {
	items []T
	limit int
}

// Push has a receiver, a dictionary and a parameter of the type's shape.
//
//go:noinline
func (s *Stack[T]) Push(item T) bool {
	if len(s.items) >= s.limit {
		return false
	}
	s.items = append(s.items, item)
	return true
}

// Pop returns a value of the type's shape.
//
//go:noinline
func (s *Stack[T]) Pop() (item T, ok bool) {
	last := len(s.items) - 1
	if last < 0 {
		return item, false
	}
	item, s.items = s.items[last], s.items[:last]
	return item, true
}

type pair[K comparable, V any] struct {
	key   K
	value V
}

// find is a generic function with two type parameters.
//
//go:noinline
func find[K comparable, V any](all []pair[K, V], key K, other V) (V, int) {
	for i, one := range all {
		if one.key == key {
			return one.value, i
		}
	}
	return other, -1
}

type celsius float64

func callGenerics(round int) {
	s := &Stack[int]{limit: 2}
	for i := 0; i < 3; i++ {
		event("main.(*Stack[go.shape.int]).Push", num("item", int64(i*round)),
			num("s.limit", 2), num("len(s.items)", int64(len(s.items))))
		ok := s.Push(i * round)
		event("main.(*Stack[go.shape.int]).Push%return", flag("$ret0", ok))
	}
	item, ok := s.Pop()
	event("main.(*Stack[go.shape.int]).Pop%return", num("item", int64(item)), flag("ok", ok))

	t := &Stack[[3]int8]{limit: 1}
	event("main.(*Stack[go.shape.[3]int8]).Push", num("item[1]", int64(-round)),
		num("s.limit", 1))
	t.Push([3]int8{1, int8(-round), 3})

	all := []pair[string, celsius]{{"low", -5.5}, {"high", celsius(round)}}
	event("main.find[go.shape.string,go.shape.float64]", text("key", "high"),
		text("all[0].key", "low"), real("all[1].value", float64(round), 64), num("len(all)", 2))
	_, at := find(all, "high", celsius(1))
	event("main.find[go.shape.string,go.shape.float64]%return", num("$ret1", int64(at)))
}
