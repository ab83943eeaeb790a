//go:build go1.18
// +build go1.18

package main

type numeric interface{ ~int | ~int32 | ~float64 }

type named int32

// largest has one body for each shape, with a hidden first parameter (the dictionary).
//
//go:noinline
func largest[T numeric](all []T, floor T) T {
	for _, one := range all {
		if one > floor {
			floor = one
		}
	}
	return floor
}

type stack[T any] struct {
	items []T
	pops  int
}

// push is a method of a generic type: receiver, dictionary, parameters.
//
//go:noinline
func (s *stack[T]) push(item T, times int) {
	for i := 0; i < times; i++ {
		s.items = append(s.items, item)
	}
	s.pops--
}

func callGenerics(round int) {
	all := []named{3, named(-round), 9}
	event("main.largest[go.shape.int32]", num("len(all)", 3), num("all[1]", int64(-round)),
		num("floor", int64(4+round)))
	largest(all, named(4+round))

	s := &stack[string]{items: []string{"bottom"}, pops: round}
	event("main.(*stack[go.shape.string]).push", text("item", "top"), num("times", 2),
		num("s->pops", int64(round)), num("len(s->items)", 1), text("s->items[0]", "bottom"))
	s.push("top", 2)
}
