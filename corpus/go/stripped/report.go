package main

import (
	"strconv"
	"syscall"
)

// The event lines are put together by hand, as in dnsforward: fmt would make each fixture bigger.

func digits(n int64) string { return strconv.FormatInt(n, 10) }

func key(expression, value string) string { return strconv.Quote(expression) + ": " + value }

func num(expression string, value int64) string { return key(expression, digits(value)) }

func real(expression string, value float64, bits int) string {
	return key(expression, strconv.FormatFloat(value, 'g', -1, bits))
}

func text(expression, value string) string { return key(expression, strconv.Quote(value)) }

func flag(expression string, value bool) string {
	return key(expression, strconv.FormatBool(value))
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
