package main

func callResults(round int) {
	s := &store{values: map[string]int{"a": 7, "b": 11 * round}}
	for _, key := range []string{"a", "b", "c"} {
		event("main.(*store).get", text("key", key), num("s.hits", int64(s.hits)),
			num("len(s.values)", 2))
		value, found, _ := s.get(key)
		event("main.(*store).get%return", num("value", int64(value)), flag("found", found),
			num("$ret0", int64(value)), flag("$ret1", found))
	}

	n, err := s.fail("round " + digits(int64(round)))
	event("main.(*store).fail%return", num("$ret0", int64(n)),
		text("$ret1.(*wrapped).text", err.(*wrapped).text),
		text("$ret1.(*wrapped).inner.(*errors.errorString).s", "no such key"))

	head, left, tail := split("some text", 4+3*round)
	event("main.split%return", num("len($ret0)", int64(len(head))), num("$ret1", int64(left)),
		text("$ret2", tail), num("len($ret2)", int64(len(tail))))

	p, m := wide(round)
	event("main.wide%return", num("$ret0.words[5]", int64(p.words[5])),
		text("$ret0.label", p.label), num("$ret1", int64(m)))

	h, odd := half(int32(round))
	event("main.half%return", real("$ret0", h, 64), num("$ret1", int64(odd)))

	sum, reason := guarded(round)
	event("main.guarded%return", num("sum", int64(sum)), text("reason", reason),
		num("len($ret1)", int64(len(reason))))

	_, shown := hidden(1, round, "x")
	event("main.hidden%return", num("$ret0", int64(round)), text("text", shown),
		text("$ret1", shown))
}

func callInterfaces(round int) {
	s, n, err := square{round + 2, "sq"}, 70000*round, errMissing
	event("main.measure", num("s.(square).side", int64(s.side)), text("s.(square).label", s.label),
		num("v.(int)", int64(n)), text("err.(*errors.errorString).s", err.Error()))
	measure(s, n, err)

	c := &circle{int32(round), "circle " + digits(int64(round))}
	event("main.survey", num("s.(*circle).radius", int64(c.radius)),
		text("s.(*main.circle).name", c.name), text("h.(holder).inner.name", c.name),
		text("v.(string)", c.name), num("len(v.(string))", int64(len(c.name))),
		num("w.(weight)", int64(1000+round)))
	survey(c, holder{c}, c.name, weight(1000+round))
}

func callMaps(round int) {
	m, s := map[string]int{}, set{}
	for i := 0; i < 40*round; i++ {
		m[digits(int64(i))], s[uint16(i/2)] = i, struct{}{}
	}
	for i := 0; i < 3; i++ {
		delete(m, digits(int64(i)))
	}
	c, d := make(chan string, 4+round), make(chan int8)
	for i := 0; i <= round; i++ {
		c <- "x"
	}
	event("main.count", num("len(m)", int64(len(m))), num("m", int64(len(m))),
		num("len(s)", int64(len(s))), num("len(c)", int64(len(c))), num("cap(c)", int64(cap(c))),
		num("len(d)", 0), num("cap(d)", 0))
	count(m, s, nil, c, d)
}

func callClosures(round int) {
	m := &machine{speed: 3 + round}
	event("main.(*machine).turn", num("by", int64(round)), num("m.speed", int64(m.speed)),
		num("m.turns", 0))
	m.turn(round)
	turn := m.turn
	event("main.(*machine).turn", num("by", -5), num("m.speed", int64(m.speed)),
		num("m.turns", int64(m.turns)))
	apply(turn, -5)

	add, name := adders(10*round, "label "+digits(int64(round)))
	total := 10 * round
	for step := 1; step < 3; step++ {
		event("main.adders.func1", num("step", int64(step)), num("base", int64(10*round)),
			num("total", int64(total)))
		total = add(step)
	}
	event("main.adders.func2", text("more", "more"), text("label", "label "+digits(int64(round))))
	name("more")

	done := make(chan int, 2)
	event("main.later", num("n", int64(round)), num("cap(done)", 2))
	event("main.later.func1", num("step", int64(round+1)), num("n", int64(round)))
	event("main.later.func2", num("step", int64(round+2)), num("n", int64(round)))
	later(done, round)
	<-done
	<-done
}

// apply calls what it is given, so that the compiler cannot know what that is.
//
//go:noinline
func apply(f func(int) int, n int) int { return f(n) }
