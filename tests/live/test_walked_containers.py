"""Elements of containers, walked in the kernel: they are those that the program says it has.

The programs draw containers of all lengths, and write what is in them for each call.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pytest

import fetchc
from fetchc.emit.bpf_layout import text_rooms
from fetchc.emit.bpf_program import ring_record
from fetchc.emit.bpf_steps import (
    Maps,
    Point,
)
from fetchc.ir.evaluate import State
from fetchc.ir.evaluate_steps import record
from fetchc.target.bpf_rules import bpf_machine, bpf_rules
from fetchc.tracer.bpf.bpf_session import BpfSession
from fetchc.tracer.bpf.plan_programs import program_of
from fetchc.tracer.events import Plan
from tests.live.rustc import COMPILERS, compiled
from tests.live.traced import SECONDS, trace
from tests.property.test_bpf_programs import unlike
from tests.support.bpf_machine import BpfMachine
from tests.support.dotnet import ahead_of_time
from tests.support.toolchains import go_build, require
from tests.support.tracefs import require_bpf

pytestmark = pytest.mark.live

MOST = 32  # elements, where no number is given

C = r"""
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline, noclone, noipa))
struct list_head { struct list_head *next, *prev; };
struct hlist_node { struct hlist_node *next, **pprev; };
struct hlist_head { struct hlist_node *first; };
struct node { struct node *next; int id; const char *name; struct node *skip[2]; };
struct box { char path[200]; short rows[50]; };
struct item { long key; struct list_head link; struct hlist_node hash; char tag[6]; struct box box; };
struct holder {
    struct node *head, *ring; struct list_head items; struct hlist_head bucket;
    int many; struct node *array; const char **texts;
};
NOINLINE void look(struct holder *h) { __asm__ volatile("" : : "r"(h) : "memory"); }
int main(int count, char **words)
{
    FILE *out = fopen(words[2], "w");
    char text[100];
    srand(atoi(words[1]));
    for (int call = 0; call < 6; call++) {
        struct holder h = {0};
        int many = call ? rand() % (call * call * 3 + 2) : 0;
        h.items.next = h.items.prev = &h.items;
        h.array = calloc(80, sizeof *h.array), h.texts = calloc(80, 8);
        struct node **end = &h.head, **ring = &h.ring, *last = 0;
        fprintf(out, "{");
        char *ids = calloc(1, 4000), *names = calloc(1, 20000), *keys = calloc(1, 4000);
        char *tags = calloc(1, 4000), *boxes = calloc(1, 40000);
        for (int n = 0; n < many; n++) {
            struct node *one = calloc(1, sizeof *one), *two = calloc(1, sizeof *two);
            struct item *item = calloc(1, sizeof *item);
            if (last) last->skip[1] = one;
            last = *end = one; end = &one->next; *ring = two; ring = &two->next;
            one->id = two->id = rand() - RAND_MAX / 2;
            memset(text, 'a' + n % 26, sizeof text); text[rand() % (n % 9 ? 20 : 100)] = 0;
            one->name = n % 7 ? strdup(text) : 0;
            h.many = n + 1, h.array[n] = *one, h.texts[n] = one->name;
            item->key = rand(); snprintf(item->tag, 6, "t%d", n);
            memset(item->box.path, 'A' + n % 26, n % 5 ? n * 3 % 200 : 200);
            sprintf(boxes + strlen(boxes), "%s{\"path\": \"%.200s\", \"rows\": [", n ? ", " : "", item->box.path);
            for (int m = 0; m < 50; m++) {
                item->box.rows[m] = m * n;
                sprintf(boxes + strlen(boxes), m ? ", %d" : "%d", m * n);
            }
            strcat(boxes, "]}");
            item->link.next = &h.items; item->link.prev = h.items.prev;
            h.items.prev->next = &item->link; h.items.prev = &item->link;
            item->hash.next = h.bucket.first; h.bucket.first = &item->hash;
            const char *comma = n ? ", " : "";
            sprintf(ids + strlen(ids), "%s%d", comma, one->id);
            sprintf(names + strlen(names), one->name ? "%s\"%s\"" : "%snull", comma, one->name);
            sprintf(keys + strlen(keys), "%s%ld", comma, item->key);
            memmove(tags + strlen(item->tag) + 4, tags, strlen(tags) + 1);
            int got = sprintf(text, "\"%s\"%s", item->tag, n ? ", " : "  ");
            memcpy(tags, text, got);
        }
        *ring = h.ring;
        fprintf(out, "\"list(h->head, next).id\": [%s], \"list(h->head, next).name\": [%s], "
                "\"list(h->head, skip[1]).id\": [%s], "
                "\"list(h->ring, next).id\": [%s], \"list(h->items, item, link).key\": [%s], "
                "\"list(h->items, item, link).box\": [%s], "
                "\"list(h->array[0:h->many]).id\": [%s], \"list(h->texts[0:h->many])\": [%s], "
                "\"list(h->bucket, item, hash).tag\": [%s]}\n", ids, names, ids, ids, keys, boxes, ids, names, tags);
        look(&h);
    }
    fclose(out);
    return 0;
}
"""  # noqa: E501

LONG_TEXT = r"""
#include <string.h>
struct node { struct node *next; const char *name; };
__attribute__((noinline, noipa)) void look(struct node *head) { __asm__ volatile("" : : "r"(head) : "memory"); }
int main(void)
{
    static char text[5000];
    memset(text, 'a', 4999);
    struct node c = {0, "last"}, b = {&c, text}, a = {&b, "first"};
    look(&a);
}
"""  # noqa: E501

CPP = r"""
#include <csignal>
#include <deque>
#include <forward_list>
#include <fstream>
#include <list>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <stack>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>
struct pair_of { int x; std::string name; };
struct linked { int id; std::unique_ptr<linked> next; };
struct all {
    std::map<int, std::string> m; std::map<std::string, pair_of> r; std::multimap<char, double> mm;
    std::set<long> s; std::list<std::string> l; std::forward_list<int> f;
    std::unordered_map<std::string, pair_of> u; std::unordered_set<int> us;
    std::vector<pair_of> v; std::vector<std::string> vs;
    std::deque<pair_of> d; std::deque<char> dc; std::queue<std::string> q;
    std::unique_ptr<linked> head; std::string keys[3]; short number;
    std::stack<int, std::vector<int>> st; std::map<long, long> ll;
    std::list<const char *> lt; std::set<const char *> ts; std::vector<const char *> vt;
    std::map<std::string, std::map<long, long>> nn;
    std::unordered_map<int, std::unordered_map<std::string, pair_of>> nu;
};
__attribute__((noinline, noipa)) void look(all &a) { asm volatile("" : : "r"(&a) : "memory"); }
static std::ostream *out;
static void put(int n) { *out << n; }
static void put(long n) { *out << n; }
static void put(double d) { *out << d; }
static void put(char c) { *out << '"' << c << '"'; }
static void put(const char *s) { *out << '"' << s << '"'; }
static void put(const std::string &s) { *out << '"' << s << '"'; }
static void put(const pair_of &p) { put(p.x); }
template <class K, class V> static void put(const std::pair<K, V> &p)
{
    *out << "{\"key\": "; put(p.first); *out << ", \"value\": "; put(p.second); *out << "}";
}
template <class T> static void all_of(const char *name, const T &c)
{
    *out << '"';
    for (const char *at = name; *at; at++) { if (*at == '"') *out << '\\'; *out << *at; }
    *out << "\": [";
    bool more = false;
    for (auto &one : c) { if (more) *out << ", "; more = true; put(one); }
    *out << "]";
}
int main(int, char **words)
{
    std::ofstream file(words[2]);
    out = &file;
    srand(atoi(words[1]));
    std::minstd_rand pick(atoi(words[1]));
    for (int call = 0; call < 7; call++) {
        all a;
        int many = call ? rand() % (call * call * 4 + 2) : 0;
        for (int n = 0; n < many; n++) {
            int k = rand() % (2 * many) - many;
            std::string t = std::string(rand() % (n % 5 ? 20 : 90), 'a' + n % 26);
            a.m[k] = t; a.r[t] = {k, t}; a.mm.insert({'a' + rand() % 3, n / 2.0}); a.s.insert(k);
            a.l.push_back(t); a.f.push_front(k); a.u[t] = {k, t}; a.us.insert(k);
            a.v.push_back({k, t}); a.vs.push_back(t); a.st.push(k); a.ll[k] = n;
            if (rand() % 3 == 0) { a.m.erase(a.m.begin()); a.us.erase(a.us.begin()); }
            a.d.push_back({k, t}); a.q.push(t);
            a.dc.insert(n % 7 ? a.dc.end() : a.dc.begin(), 1 + rand() % 40, 'a' + n % 26);
            if (rand() % 3 == 0) { a.d.pop_front(); a.q.pop(); a.dc.pop_front(); }
            a.head = std::unique_ptr<linked>(new linked{k, std::move(a.head)});
        }
        const char *keys[] = {
            "ccc", "kkkkkkkkkkkkkkkkkk", "longer than libc++ has room for in a string"
        };
        if (many > 20) a.u[keys[2]] = {many, "u"}, a.r[keys[2]] = {-many, "r"};
        for (auto &key : a.keys) {  // one of the map, or as long as one
            key = a.r.empty() ? "none" : std::next(a.r.begin(), pick() % a.r.size())->first;
            if (pick() % 3 == 0 && !key.empty()) key[pick() % key.size()] ^= 1;
        }
        for (auto &text : a.l)
            a.lt.push_back(text.c_str()), a.ts.insert(text.c_str()), a.vt.push_back(text.c_str());
        for (int n = 0; n < many; n++) a.nn[std::string(n % 9, 'n')][n] = n, a.nu[n]["u"] = {n, ""};
        a.nn["ll"] = a.ll, a.nu[7] = a.u;
        a.number = (int)(pick() % (2 * many + 1)) - many;
        file << "{";
        all_of("a.m[:]", a.m); file << ", "; all_of("a.r[:].x", a.r); file << ", ";
        all_of("a.mm[:7]", a.mm); file << ", "; all_of("a.s[:100]", a.s); file << ", ";
        all_of("a.lt[:7]", a.lt); file << ", "; all_of("a.ts[:7]", a.ts); file << ", ";
        all_of("list(a.vt, 7)", a.vt); file << ", ";
        all_of("a.l[:]", a.l); file << ", "; all_of("a.f[:]", a.f); file << ", ";
        all_of("a.u[:].x", a.u); file << ", "; all_of("a.us[:64]", a.us);
        file << ", "; all_of("list(a.v, 90).x", a.v); file << ", "; all_of("list(a.vs)", a.vs);
        file << ", "; all_of("a.d[:].x", a.d); file << ", "; all_of("list(a.dc, 90)", a.dc);
        std::vector<std::string> queued;
        for (auto q = a.q; !q.empty(); q.pop()) queued.push_back(q.front());
        std::vector<int> stacked(a.st.size());
        for (auto st = a.st; !st.empty(); st.pop()) stacked[st.size() - 1] = st.top();
        file << ", "; all_of("a.st[:40]", stacked); file << ", \"a.ll[a.number-1]\": ";
        if (a.ll.count(a.number - 1)) put(a.ll[a.number - 1]); else file << "null";
        std::vector<int> ids;
        for (auto one = a.head.get(); one; one = one->next.get()) ids.push_back(one->id);
        file << ", "; all_of("a.q[:]", queued); file << ", "; all_of("list(a.head, next).id", ids);
        for (const char *key : keys)
            for (int which = 0; which < 2; which++) {
                file << ", \"a." << (which ? "u" : "r") << "[\\\"" << key << "\\\"].x\": ";
                const pair_of *found = nullptr;
                if (which && a.u.count(key)) found = &a.u[key];
                if (!which && a.r.count(key)) found = &a.r[key];
                if (found) file << found->x; else file << "null";
            }
        for (int n = 0; n < 3; n++)
            for (int which = 0; which < 2; which++) {
                file << ", \"a." << (which ? "u" : "r") << "[a.keys[" << n << "]].x\": ";
                auto in_u = a.u.find(a.keys[n]); auto in_r = a.r.find(a.keys[n]);
                if (which && in_u != a.u.end()) file << in_u->second.x;
                else if (!which && in_r != a.r.end()) file << in_r->second.x;
                else file << "null";
            }
        auto in_nn = a.nn["ll"].find(a.number - 1); auto in_nu = a.nu[7].find("ccc");
        file << ", \"a.nn[\\\"ll\\\"][a.number-1]\": ";
        if (in_nn != a.nn["ll"].end()) put(in_nn->second); else file << "null";
        file << ", \"a.nu[7][\\\"ccc\\\"].x\": ";
        if (in_nu != a.nu[7].end()) put(in_nu->second); else file << "null";
        file << ", "; all_of("a.nn[\"ll\"][:7]", a.nn["ll"]);
        file << ", \"a.s[a.number]\": ";
        if (a.s.count(a.number)) put(a.number); else file << "null";
        file << ", \"a.us[3]\": " << (a.us.count(3) ? "3" : "null");
        file << ", \"a.m[a.number]\": ";
        if (a.m.count(a.number)) put(a.m[a.number]); else file << "null";
        file << ", \"a.m[3]\": ";
        if (a.m.count(3)) put(a.m[3]); else file << "null";
        file << "}" << std::endl;
        look(a);
        if (words[3] && call == 6) {
            file << (long)&a << std::endl;
            raise(SIGSTOP);
        }
    }
}
"""

GO = r"""package main

import (
	"encoding/json"
	"math/rand"
	"os"
	"strconv"
	"strings"
)

type point struct {
	X    int
	Name string
}

type wide struct {
	A, B [8]int
	Name string
}

type entry struct {
	Key   interface{} `json:"key"`
	Value interface{} `json:"value"`
}

//go:noinline
func look(m map[string]int, p map[int32]*point, q map[point]bool, s map[uint8]point,
	xs []point, w map[wide]int8, v map[string]wide, o *others) int {
	return len(xs) + len(m) + len(p) + len(q) + len(s) + len(w) + len(v) + len(o.set)
}

type others struct {
	set   map[string]struct{}
	held  map[int]interface{}
	each  []interface{}
	parts []map[uint8]point
	rows  map[int][3]int16
	paths map[string]int
	path  string
	key   int32
	by    map[string]map[int32]*point
	which string
}

func main() {
	seed, _ := strconv.Atoi(os.Args[1])
	file, _ := os.Create(os.Args[2])
	random := rand.New(rand.NewSource(int64(seed)))
	picks := rand.New(rand.NewSource(int64(seed)))
	out := json.NewEncoder(file)
	for call := 0; call < 9; call++ {
		var m map[string]int
		var p map[int32]*point
		var q map[point]bool
		var s map[uint8]point
		var xs []point
		var w map[wide]int8
		var v map[string]wide
		names := []string{}
		if call > 0 {
			m, p, q, s = map[string]int{}, map[int32]*point{}, map[point]bool{}, map[uint8]point{}
			w, v = map[wide]int8{}, map[string]wide{}
		}
		o := &others{map[string]struct{}{}, map[int]interface{}{}, nil, nil, map[int][3]int16{},
			map[string]int{}, "", 0, map[string]map[int32]*point{"p": p, "nil": nil}, "p"}
		many := 0
		if call > 1 {
			many = random.Intn(1 << uint(call+1))
		}
		for n := 0; n < many; n++ {
			k := random.Intn(2*many) - many
			one := point{k, "n" + strconv.Itoa(n)}
			m["k"+strconv.Itoa(k)] = n
			p[int32(k)] = &one
			q[one] = n%2 == 0
			xs = append(xs, one)
			names = append(names, one.Name)
			s[uint8(k)] = one
			w[wide{[8]int{k}, [8]int{7: n}, one.Name}] = int8(k)
			v["k"+strconv.Itoa(k)] = wide{[8]int{k}, [8]int{7: n}, one.Name}
			o.set[one.Name] = struct{}{}
			o.paths[strings.Repeat(one.Name, n%9)] = n
			o.rows[k] = [3]int16{2: int16(n)}
			o.held[n] = []interface{}{n, one.Name, nil}[n%3]
			o.each = append(o.each, o.held[n])
			if random.Intn(3) == 0 {
				delete(m, "k"+strconv.Itoa(random.Intn(2*many)-many))
			}
		}
		if many > 0 {
			n := picks.Intn(many)
			o.path = strings.Repeat("n"+strconv.Itoa(n), n%9+picks.Intn(2))
			o.key = int32(picks.Intn(2*many) - many)
		}
		for n := 0; n < many%30; n++ {
			o.by["n"+strconv.Itoa(n)] = map[int32]*point{o.key: {n, "one"}}
		}
		if many%2 == 1 {
			o.which = "n" + strconv.Itoa(many/2)
		}
		a, b, c, d := []entry{}, []entry{}, []entry{}, []entry{}
		for k, v := range m {
			a = append(a, entry{k, v})
		}
		for k, v := range p {
			b = append(b, entry{k, v.Name})
		}
		for k, v := range q {
			c = append(c, entry{k, v})
		}
		for k, v := range s {
			d = append(d, entry{k, v})
		}
		e, f := []entry{}, []entry{}
		for k, v := range w {
			e = append(e, entry{k, v})
		}
		for k, v := range v {
			f = append(f, entry{k, v.B[7]})
		}
		o.parts = []map[uint8]point{nil, s}
		set, rows, held, each := []interface{}{}, []entry{}, []entry{}, []interface{}{}
		shown := func(one interface{}) interface{} {
			switch one.(type) {
			case int:
				return map[string]string{"type": "int"}
			case string:
				return one
			}
			return map[string]string{"type": "nil"}
		}
		for k := range o.set {
			set = append(set, k)
		}
		for k, v := range o.rows {
			rows = append(rows, entry{k, v[2]})
		}
		for k, v := range o.held {
			held = append(held, entry{k, shown(v)})
		}
		for _, v := range o.each {
			each = append(each, shown(v))
		}
		said := map[string]interface{}{"m[:]": a, "p[:99].Name": b, "q[:]": c, "s[:5]": d}
		said["w[:12]"], said["v[:].B[7]"] = e, f
		said["o.set[:]"], said["o.rows[:][2]"], said["o.parts[1][:5]"] = set, rows, d
		said["o.held[:9].(string)"], said["list(o.each, 9).(string)"] = held, each
		said["v[\"k3\"].Name"] = nil
		if v, ok := v["k3"]; ok {
			said["v[\"k3\"].Name"] = v.Name
		}
		said["list(xs, 64).Name"] = names
		for _, k := range []string{"k3", "k-17"} {
			if v, ok := m[k]; ok {
				said["m[\""+k+"\"]"] = v
			} else {
				said["m[\""+k+"\"]"] = nil
			}
		}
		said["o.paths[o.path]"], said["p[o.key+1].Name"] = nil, nil
		if v, ok := o.paths[o.path]; ok {
			said["o.paths[o.path]"] = v
		}
		if v, ok := p[o.key+1]; ok {
			said["p[o.key+1].Name"] = v.Name
		}
		for label, k := range map[string]string{"o.set[\"n7\"]": "n7", "o.set[o.path]": o.path} {
			said[label] = nil
			if _, ok := o.set[k]; ok {
				said[label] = k
			}
		}
		for label, name := range map[string]string{
			"o.by[\"p\"][o.key].Name": "p", "o.by[o.which][-7].Name": o.which,
			"o.by[\"nil\"][3].Name": "nil", "o.by[\"none\"][3].Name": "none"} {
			key := map[bool]int32{true: -7, false: o.key}[label[:6] == "o.by[o"]
			said[label] = nil
			if v, ok := o.by[name][key]; ok {
				said[label] = v.Name
			}
		}
		said["o.by[\"p\"][:99].Name"] = b
		said["p[-7].Name"] = nil
		if v, ok := p[-7]; ok {
			said["p[-7].Name"] = v.Name
		}
		out.Encode(said)
		look(m, p, q, s, xs, w, v, o)
	}
	file.Close()
}
"""

MAPS_OF_GO = frozenset(
    ("m[:]", "p[:99].Name", "q[:]", "s[:5]", "w[:12]", "v[:].B[7]", "o.set[:]", "o.rows[:][2]")
) | {"o.parts[1][:5]", "o.held[:9].(string)", 'o.by["p"][:99].Name'}

RUST = r"""
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, LinkedList, VecDeque};
use std::fmt::Display;
use std::io::Write;
pub struct Point { x: i64, name: String }
pub enum Sum { Number(i64), Name(String) }
#[inline(never)]
fn look(m: &HashMap<u32, Point>, s: &HashSet<String>, n: &HashMap<String, i64>, v: &Vec<Point>, b: &BTreeMap<u16, String>, e: &(HashMap<i128, i64>, Option<HashMap<u32, Sum>>, BTreeSet<i64>, String, u16, VecDeque<Point>, LinkedList<String>, HashMap<u32, BTreeMap<u16, i64>>, BTreeMap<u16, HashMap<String, i64>>)) -> usize {
    let e_more = e.7.len() + e.8.len();
    e_more +
    e.0.len() + e.1.is_some() as usize + b.len() + e.2.len() + e.5.len() + e.6.len() + m.len() + s.len() + n.len() + v.len()
}
fn joined<T: Display>(all: impl Iterator<Item = T>) -> String {
    format!("[{}]", all.map(|one| one.to_string()).collect::<Vec<_>>().join(", "))
}
fn pair(key: impl Display, value: impl Display) -> String {
    format!("{{\"key\": {}, \"value\": {}}}", key, value)
}
fn quoted(text: &str) -> String { format!("\"{}\"", text) }
fn main() {
    let words: Vec<String> = std::env::args().collect();
    let mut seed: u64 = words[1].parse().unwrap();
    let mut out = std::fs::File::create(&words[2]).unwrap();
    let mut random = move |most: u64| { seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407); (seed >> 33) % most };
    for call in 0..6u64 {
        let many = if call == 0 { 0 } else { random(call * call * 9) };
        let (mut b, mut t, mut w, mut h) = (BTreeMap::new(), BTreeSet::new(), HashMap::new(), HashMap::new());
        let (mut m, mut s, mut n, mut v) = (HashMap::new(), HashSet::new(), HashMap::new(), Vec::new());
        let (mut d, mut l) = (VecDeque::new(), LinkedList::new());
        for i in 0..many {
            let k = random(2 * many);
            m.insert(k as u32, Point { x: i as i64 - 9, name: format!("n{}", i) });
            s.insert(format!("s{}", k));
            n.insert(format!("k{}", k), i as i64 - 5);
            b.insert(k as u16, format!("b{}", i));
            t.insert(k as i64 - many as i64);
            w.insert((k as i128 - 5) << (i % 2 * 64), i as i64);
            h.insert(k as u32, if i % 2 == 0 { Sum::Number(i as i64) } else { Sum::Name(format!("h{}", i)) });
            if random(4) == 0 { b.remove(&(random(2 * many) as u16)); }
            v.push(Point { x: k as i64, name: format!("v{}", i) });
            let one = Point { x: k as i64, name: format!("d{}", i) };
            if random(3) == 0 { d.push_front(one); l.push_front(format!("l{}", i)); } else { d.push_back(one); l.push_back(format!("l{}", i)); }
            if random(3) == 0 { d.pop_front(); l.pop_back(); }
            if random(3) == 0 { m.remove(&(random(2 * many) as u32)); }
        }
        let o = if call == 2 { None } else { Some(h) };
        let held = match &o { None => "{\"variant\": \"None\"}".to_string(), Some(h) => joined(h.iter().map(|(k, one)| pair(k, match one { Sum::Number(_) => "{\"variant\": \"Number\"}".to_string(), Sum::Name(text) => quoted(text) }))) };
        let of = |key: &str| n.get(key).map_or("null".to_string(), |one| one.to_string());
        let (mut x, mut y) = (HashMap::new(), BTreeMap::new());
        for i in 0..many as u32 {
            x.insert(i, (0..3 * i as u16).map(|one| (one, one as i64)).collect::<BTreeMap<_, _>>());
            y.insert(i as u16, (0..i).map(|one| (format!("k{}", one), one as i64)).collect::<HashMap<_, _>>());
        }
        let (key, number) = (format!("k{}", random(2 * many + 1)), random(2 * many + 1) as u16);
        let (in_n, in_b) = (of(&key), b.get(&number).map_or("null".to_string(), |one| quoted(one)));
        writeln!(out, "{{\"m[:]\": {}, \"m[:7].name\": {}, \"s[:]\": {}, \"n[:99]\": {}, \"list(v, 40).name\": {}, \"n[\\\"k3\\\"]\": {}, \"m[5].x\": {}, \"b[:]\": {}, \"e.2[:70]\": {}, \"b[4]\": {}, \"e.0[-2]\": {}, \"e.0[3]\": {}, \"e.1.Some.0[:].Name.0\": {}, \"e.6[:]\": {}, \"list(e.5, 40)\": {}, \"e.5[:].x\": {}, \"n[e.3]\": {}, \"b[e.4]\": {}, \"s[\\\"s3\\\"]\": {}, \"e.2[-2]\": {}, \"e.7[5][e.4]\": {}, \"e.8[4][\\\"k3\\\"]\": {}}}",
            joined(m.iter().map(|(k, p)| pair(k, format!("{{\"x\": {}, \"name\": {}}}", p.x, quoted(&p.name))))),
            joined(m.iter().map(|(k, p)| pair(k, quoted(&p.name)))),
            joined(s.iter().map(|one| quoted(one))),
            joined(n.iter().map(|(k, one)| pair(quoted(k), one))),
            joined(v.iter().map(|one| quoted(&one.name))), of("k3"),
            m.get(&5).map_or("null".to_string(), |one| one.x.to_string()),
            joined(b.iter().map(|(k, one)| pair(k, quoted(one)))), joined(t.iter()),
            b.get(&4).map_or("null".to_string(), |one| quoted(one)),
            w.get(&-2).map_or("null".to_string(), |one| one.to_string()), w.get(&3).map_or("null".to_string(), |one| one.to_string()), held,
            joined(l.iter().map(|one| quoted(one))), joined(d.iter().map(|p| format!("{{\"x\": {}, \"name\": {}}}", p.x, quoted(&p.name)))), joined(d.iter().map(|p| p.x)), in_n, in_b,
            s.get("s3").map_or("null".to_string(), |one| quoted(one)), t.get(&-2).map_or("null".to_string(), |one| one.to_string()),
            x.get(&5).and_then(|one| one.get(&number)).map_or("null".to_string(), |one| one.to_string()),
            y.get(&4).and_then(|one| one.get("k3")).map_or("null".to_string(), |one| one.to_string())).unwrap();
        look(&m, &s, &n, &v, &b, &(w, o, t, key, number, d, l, x, y));
    }
}
"""  # noqa: E501

RINGS_OF_RUST: tuple[str, ...] = ("list(e.5, 40)", "e.5[:].x")
"""Before Rust 1.67 a VecDeque has no length, and these are refused."""

TABLES_OF_RUST = frozenset(("m[:]", "m[:7].name", "s[:]", "n[:99]", "e.1.Some.0[:].Name.0"))

CSHARP = r"""
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
public struct Point { public int X; public string Name; }
public class Program {
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Look(Dictionary<string, int> d, Dictionary<short, Point> p, HashSet<string> s, List<Point> l, Queue<string> q, Stack<int> t, ArraySegment<Point> a, LinkedList<Point> n, ConcurrentStack<string> c, string k, int i, Dictionary<string, Dictionary<short, Point>> x) {
        return q.Count + t.Count + a.Count + d.Count + p.Count + s.Count + l.Count;
    }
    static string T(string text) { return text == null ? "null" : "\"" + text + "\""; }
    static string P(Point p) { return "{\"X\": " + p.X + ", \"Name\": " + T(p.Name) + "}"; }
    static string Pair(object key, object value) { return "{\"key\": " + key + ", \"value\": " + value + "}"; }
    static string All(IEnumerable<string> all) { return "[" + string.Join(", ", all) + "]"; }
    public static void Main(string[] words) {
        var random = new Random(int.Parse(words[0]));
        using (var file = new StreamWriter(words[1]))
            for (int call = 0; call < 6; call++) {
                var d = new Dictionary<string, int>(); var p = new Dictionary<short, Point>();
                var s = new HashSet<string>(); var l = new List<Point>(); var q = new Queue<string>(); var t = new Stack<int>();
                int many = call == 0 ? 0 : random.Next(call * call * 9);
                for (int n = 0; n < many; n++) {
                    int k = random.Next(2 * many);
                    var one = new Point { X = n - 9, Name = n % 5 == 0 ? null : "n\u00e9" + n };
                    d["k\u00fc" + k] = n; p[(short)(k - many)] = one; s.Add(n == 3 ? null : "s" + k); l.Add(one);
                    if (random.Next(3) == 0) { d.Remove("k\u00fc" + random.Next(2 * many)); s.Remove("s" + random.Next(2 * many)); }
                    q.Enqueue("q" + k); t.Push(k); if (random.Next(3) == 0) { q.Dequeue(); t.Pop(); }
                    if (random.Next(3) == 0) p.Remove((short)(random.Next(2 * many) - many));
                }
                var linked = new LinkedList<Point>(l.Where(one => one.X % 3 != 0)); var pushed = new ConcurrentStack<string>(q);
                string key = "k\u00fc" + random.Next(2 * many + 1); int index = random.Next(2 * many + 1) - many;
                var x = new Dictionary<string, Dictionary<short, Point>> { { "p", p }, { key, new Dictionary<short, Point>() }, { "null", null } };
                int found; Point point; var a = new ArraySegment<Point>(l.ToArray(), many / 3, many - many / 2);
                file.WriteLine("{" + string.Join(", ", new[] {
                    "\"d[:]\": " + All(d.Select(one => Pair(T(one.Key), one.Value))),
                    "\"p[:70].Name\": " + All(p.Select(one => Pair(one.Key, T(one.Value.Name)))),
                    "\"p[:]\": " + All(p.Select(one => Pair(one.Key, P(one.Value)))),
                    "\"q[:40]\": " + All(q.Select(T)), "\"list(t)\": " + All(t.Select(one => one.ToString())), "\"a[:].X\": " + All(a.Select(one => one.X.ToString())),
                    "\"n[:].Name\": " + All(linked.Select(one => T(one.Name))), "\"list(n, 7)\": " + All(linked.Select(P)), "\"c[:]\": " + All(pushed.Select(T)),
                    "\"s[:99]\": " + All(s.Select(T)), "\"list(l, 40)\": " + All(l.Select(P)),
                    "\"d[\\\"k\u00fc7\\\"]\": " + (d.TryGetValue("k\u00fc7", out found) ? found.ToString() : "null"),
                    "\"s[\\\"s7\\\"]\": " + (s.Contains("s7") ? "\"s7\"" : "null"),
                    "\"d[k]\": " + (d.TryGetValue(key, out found) ? found.ToString() : "null"),
                    "\"p[(short)i].X\": " + (p.TryGetValue((short)index, out point) ? point.X.ToString() : "null"),
                    "\"x[\\\"p\\\"][(short)i].X\": " + (p.TryGetValue((short)index, out point) ? point.X.ToString() : "null"),
                    "\"x[k][3].X\": null",
                    "\"p[-3].X\": " + (p.TryGetValue(-3, out point) ? point.X.ToString() : "null"),
                }) + "}");
                file.Flush();
                Look(d, p, s, l, q, t, a, linked, pushed, key, index, x);
            }
    }
}
"""  # noqa: E501

CHANGING = r"""
#include <atomic>
#include <list>
#include <map>
#include <thread>
#include <vector>
struct node { node *next; volatile long value; };
struct all { node *head; std::map<int, long> m; std::list<long> l; std::vector<long> v; };
__attribute__((noinline, noipa)) void look(all &a) { asm volatile("" : : "r"(&a) : "memory"); }
static void wait(int most) { for (volatile int at = 0; at < most; at = at + 1) { } }
int main()
{
    all a{};
    const int many = 30;
    node nodes[many] = {};
    std::vector<volatile long *> each[4];
    a.v = std::vector<long>(many);
    for (int n = 0; n < many; n++) {
        if (n) nodes[n - 1].next = &nodes[n];
        a.m[n] = 0; a.l.push_back(0);
        each[0].push_back(&nodes[n].value); each[1].push_back(&a.m[n]);
        each[2].push_back(&a.l.back()); each[3].push_back(&a.v[n]);
    }
    a.head = nodes;
    std::atomic<bool> done{false};
    std::thread writer([&] {
        // From the last one to the first: the numbers are at each moment n, ..., n, n + 1, ..., n + 1.
        for (long pass = 1; !done; pass++) {
            for (auto &one : each)
                for (int n = many - 1; n >= 0; n--) *one[n] = pass;
            wait(pass % 20 ? 5000 : 500000);
        }
    });
    for (int call = 0; call < 300; call++) { wait(20000); look(a); }
    done = true;
    writer.join();
}
"""  # noqa: E501

CHANGING_GO = r"""package main

import "sync/atomic"

//go:noinline
func look(m map[int]int) int { return 0 }

func wait(most int) {
	var spent int64
	for at := 0; at < most; at++ {
		atomic.AddInt64(&spent, 1)
	}
}

func main() {
	m := map[int]int{}
	for n := 0; n < 30; n++ {
		m[n] = 0
	}
	var done int32
	go func() {
		for pass := 1; atomic.LoadInt32(&done) == 0; pass++ {
			for n := 29; n >= 0; n-- {
				m[n] = pass
			}
			if pass%20 == 0 {
				wait(100000)
			}
		}
	}()
	for call := 0; call < 300; call++ {
		wait(5000)
		look(m)
	}
	atomic.StoreInt32(&done, 1)
}
"""


def compared(one: Mapping[str, Any], wanted: Mapping[str, Any], unordered: frozenset[str]) -> str:
    """How a hit differs from what the program has; empty where it does not."""
    if one["faults"] or "changed" in one:
        return f"faults: {one}"
    for label, whole in wanted.items():
        if not isinstance(whole, list):
            if one["args"][label] != whole:
                return f"{label}: {one['args'][label]} for {whole}"
            continue
        bound = re.search(r"\[:([0-9]+)\]|, ([0-9]+)\)", label)
        most = MOST if bound is None else int(bound[1] or bound[2])
        shown = one["args"][label]
        if len(shown) != min(most, len(whole)):
            return f"{label}: {len(shown)} of {len(whole)}"
        if one.get("cut", {}).get(label) != (len(whole) if len(whole) > most else None):
            return f"{label}: {one['cut']} of {len(whole)}"
        if label in unordered:
            left = list(whole)
            for each in shown:
                if each not in left:
                    return f"{label}: {each} is not in {whole}"
                left.remove(each)
        elif shown != list(whole[: len(shown)]):
            return f"{label}: {shown} for {whole}"
    return ""


def check(
    capfd: pytest.CaptureFixture[str],
    program: Path,
    function: str,
    unordered: frozenset[str] = frozenset(),
    seeds: Sequence[int] = (1, 2),
    by: Sequence[str] = (),
    left_out: Collection[str] = (),
) -> None:
    for seed in seeds:
        said = program.parent / "said"
        subprocess.run([*by, program, str(seed), said], check=True, timeout=SECONDS)
        calls = [json.loads(line) for line in said.read_text().splitlines()]
        labels = [label for label in calls[0] if label not in left_out]
        words: list[str | Path] = [
            "-x",
            program,
            "-f",
            function,
            "--format",
            "jsonl",
            "--",
            *by,
            program,
            str(seed),
            said,
        ]
        done = trace(capfd, *labels, *words)
        calls = [json.loads(line) for line in said.read_text().splitlines()]
        assert len(done.objects) == len(calls)
        for one, wanted in zip(done.objects, calls, strict=True):
            asked = {label: wanted[label] for label in labels}
            assert compared(one, asked, unordered) == ""


@pytest.fixture
def kernel_walks() -> None:
    require_bpf()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_lists_of_c(
    kernel_walks: None, capfd: pytest.CaptureFixture[str], tmp_path: Path, compiler: str
) -> None:
    require(compiler)
    program = tmp_path / "lists"
    (tmp_path / "lists.c").write_text(C)
    subprocess.run([compiler, "-g", "-O1", "-w", "-o", program, tmp_path / "lists.c"], check=True)
    check(capfd, program, "look")


def test_a_text_that_fills_its_room_is_cut(
    kernel_walks: None, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    require("gcc")
    program, source = tmp_path / "long", tmp_path / "long.c"
    source.write_text(LONG_TEXT)
    subprocess.run(["gcc", "-g", "-O1", "-o", program, source], check=True)
    words: list[str | Path] = ["-x", program, "-f", "look", "--", program]
    (line,) = trace(capfd, "list(head, next).name", *words).lines
    assert re.search(r'=\["first", "a{1000,}"…, "last"\]$', line)


@pytest.mark.parametrize(
    "command", ["g++ -std=c++11", "g++ -O1", "clang++ -fstandalone-debug -stdlib=libc++"]
)
def test_containers_of_cpp(
    kernel_walks: None, capfd: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    compiler, *options = command.split()
    require(compiler, *["libc++" for one in options if one.endswith("libc++")])
    program, source = tmp_path / "containers", tmp_path / "containers.cc"
    source.write_text(CPP)
    subprocess.run([compiler, *options, "-g", "-w", "-o", program, source], check=True)
    check(capfd, program, "look", seeds=(1, 2) if compiler == "g++" else (1,))


def go_program(folder: Path, version: str, source: str, machine: str = "amd64") -> Path:
    """A program of one file, for the machine that Go so calls."""
    require(f"go{version}")
    package = folder / "src" / "drawn"
    package.mkdir(parents=True)
    (package / "main.go").write_text(source)
    program = folder / "maps"
    built = go_build(version, folder)
    environment = {**built.environment, "GOARCH": machine}
    subprocess.run([built.command, "build", "-o", program, "drawn"], env=environment, check=True)
    return program


@pytest.mark.parametrize("version", ["1.15", "1.22", "1.24", "1.27"])
def test_maps_of_go(
    kernel_walks: None, capfd: pytest.CaptureFixture[str], tmp_path: Path, version: str
) -> None:
    program = go_program(tmp_path, version, GO)
    check(capfd, program, "main.look", MAPS_OF_GO)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_containers_of_rust(
    kernel_walks: None, capfd: pytest.CaptureFixture[str], tmp_path: Path, compiler: str
) -> None:
    source = tmp_path / "drawn" / "main.rs"
    source.parent.mkdir()
    source.write_text(RUST)
    program = compiled(compiler, source, tmp_path / "drawn_program")
    probe, rings = fetchc.open(str(program)).probe("look", at="body"), RINGS_OF_RUST
    try:
        probe.asked("e.5[1]")
        rings = ()
    except fetchc.CompileError:
        with pytest.raises(fetchc.CompileError):
            probe.asked("list(e.5)")
    check(capfd, program, "look", TABLES_OF_RUST, left_out=rings)
    with pytest.raises(fetchc.CompileError, match="the keys are of the type `u16`"):
        probe.asked("b[m.len()]")


STORED = r"""
use std::collections::BTreeMap;
struct Held { value: u8, other: i32 }
#[inline(never)]
fn look(r: &BTreeMap<u32, &'static i16>, b: &BTreeMap<String, Box<Option<u16>>>, h: &BTreeMap<u8, Held>, t: &BTreeMap<(u8,), (String, f64)>) -> usize {
    r.len() + b.len() + h.len() + t.len()
}
fn main() {
    let r = BTreeMap::from([(3, &-7i16), (4, &9)]);
    let b = (0..40).map(|n| (format!("k{}", n), Box::new(Some(n)))).collect();
    let h = BTreeMap::from([(1, Held { value: 5, other: -1 })]);
    look(&r, &b, &h, &BTreeMap::from([((1,), ("t".to_string(), 1.5))]));
}
"""  # noqa: E501


@pytest.mark.parametrize("compiler", COMPILERS[:2])
def test_what_a_tree_of_rust_stores(
    kernel_walks: None, capfd: pytest.CaptureFixture[str], tmp_path: Path, compiler: str
) -> None:
    # References and boxes, which have no names by which their types are found; and members of the
    # names that the library's wrappers of a value have.
    source = tmp_path / "drawn" / "main.rs"
    source.parent.mkdir()
    source.write_text(STORED)
    program = compiled(compiler, source, tmp_path / "drawn_program")
    expected = {
        "*r[4]": "9",
        "b[:2].Some.0": '[{key="k0", value=0}, {key="k1", value=1}, …(of 40)]',
        'b["k7"].Some.0': "7",
        "h[:]": "[{key=1, value={value=5, other=-1}}]",
        "t[:]": '[{key=(1,), value=("t", 1.5)}]',
        "t[:].0": '[{key=(1,), value="t"}]',
    }
    found = trace(capfd, *expected, "-x", program, "-f", "look", "--at", "body", "--", program)
    assert found.status == 0, found.errors
    assert [
        text for text, value in expected.items() if f"  {text}={value}" not in found.lines[0]
    ] == []


def test_collections_of_dotnet(
    kernel_walks: None, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = tmp_path / "drawn.cs"
    source.write_text(CSHARP)
    program = ahead_of_time(source, tmp_path / "drawn.exe")
    check(capfd, program, "Program.Look", by=["mono"])


def test_the_interpreter_finds_the_same_in_the_memory_of_the_program(
    kernel_walks: None, tmp_path: Path
) -> None:
    require("g++")
    path, source, said = tmp_path / "stopped", tmp_path / "stopped.cc", tmp_path / "said"
    source.write_text(CPP)
    subprocess.run(["g++", "-g", "-O1", "-o", path, source], check=True)
    labels = ["a.m[:]", "a.mm[:7]", "a.s[:100]", "a.l[:]", "a.d[:].x", "a.u[:].x", "list(a.vs)"]
    labels += ['a.nn["ll"][:7]', 'a.nn["ll"][a.number-1]', 'a.nu[7]["ccc"].x']
    probe = fetchc.open(str(path)).probe("look")
    with BpfSession() as session:
        plan = probe.plan([probe.asked(label) for label in labels], session.group, "look")
        session.add(plan)
        session.start()
        with subprocess.Popen([path, "7", said, "stop"]) as running:
            try:
                assert os.WIFSTOPPED(os.waitpid(running.pid, os.WUNTRACED)[1])
                session.stop()
                *_, last = session.events()
                *_, wanted, address = said.read_text().splitlines()
                with open(f"/proc/{running.pid}/mem", "rb", 0) as memory:
                    data = evaluated(memory, plan, int(address))
            finally:
                running.kill()
        (decoder,) = session.decoders.values()
        event = decoder.event((0, 0, data, 0, len(data), ()))
    assert (event.args, event.faults) == (last.args, last.faults)
    assert {label: type(value) for label, value in event.args.items()} == {
        label: type(value) for label, value in last.args.items()
    }
    whole = json.loads(wanted)
    assert all(len(whole[label]) > 20 and last.args[label] for label in labels[:7])
    assert not compared(
        {"args": last.args, "faults": []}, {"a.s[:100]": whole["a.s[:100]"]}, frozenset()
    )


def evaluated(memory: BinaryIO, plan: Plan, address: int) -> bytes:
    """The record that the instructions make in that memory, which is as the steps say."""

    def read(at: int, size: int) -> bytes | None:
        try:
            return os.pread(memory.fileno(), size, at)
        except (OSError, OverflowError):
            return None

    machine = bpf_machine("x86_64")
    assert machine is not None
    rules, program = bpf_rules((6, 18)), program_of(plan.fields[0])
    rooms = text_rooms(program, rules) or (0,)
    wanted = record(program, State({"di": address, "sp": 0}, read, 0, b"task"), rooms[-1])
    context = bytearray(168)
    struct.pack_into("<Q", context, machine.registers["di"], address)
    code = ring_record(program, machine, rules, Maps(5, 6), Point(0, 0, False), False, True)
    run = BpfMachine(bytes(context), read)
    run.run(code.instructions)
    assert unlike(program, run.submitted[0], wanted) == ""
    return run.submitted[0]


def of_no_moment(numbers: Sequence[int]) -> bool:
    """Whether the numbers of :data:`CHANGING` were never all there at once."""
    return list(numbers) != sorted(numbers) or numbers[-1] - numbers[0] > 1


def test_what_another_thread_changes_is_marked(
    kernel_walks: None, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    require("g++")
    program, source = tmp_path / "changing", tmp_path / "changing.cc"
    source.write_text(CHANGING)
    subprocess.run(["g++", "-g", "-O1", "-pthread", "-o", program, source], check=True)
    labels = ["list(a.head, next).value", "a.m[:]", "a.l[:]", "list(a.v)"]
    check_marks(capfd, program, "look", labels)


@pytest.mark.parametrize("version", ["1.22", "1.27"])
def test_what_another_goroutine_changes_is_marked(
    kernel_walks: None, capfd: pytest.CaptureFixture[str], tmp_path: Path, version: str
) -> None:
    check_marks(capfd, go_program(tmp_path, version, CHANGING_GO), "main.look", ["m[:]"])


def check_marks(
    capfd: pytest.CaptureFixture[str], program: Path, function: str, labels: Sequence[str]
) -> None:
    words: list[str | Path] = ["-x", program, "-f", function, "--format", "jsonl", "--", program]
    marked = plain = mixed = 0
    for _ in range(20):  # where both threads share a processor, little changes meanwhile
        for one in trace(capfd, *labels, *words).objects:
            for label in labels:
                shown = one["args"][label]
                if label.endswith("m[:]"):
                    shown = [one["value"] for one in sorted(shown, key=lambda one: one["key"])]
                assert len(shown) == 30
                if label in one.get("changed", ()):
                    marked += 1
                    mixed += of_no_moment(shown)
                else:
                    plain += 1
                    assert not of_no_moment(shown), (label, shown)
        if min(marked, plain, mixed) > 0:
            break
    assert min(marked, plain, mixed) > 0


def test_what_differs_is_seen() -> None:
    one: dict[str, Any] = {"args": {"v[:2]": [1, 2]}, "faults": [], "cut": {"v[:2]": 3}}
    assert compared(one, {"v[:2]": [1, 2, 3]}, frozenset()) == ""
    assert compared(one, {"v[:2]": [1, 2]}, frozenset())
    assert compared(one, {"v[:2]": [2, 1, 3]}, frozenset())
    assert compared(one, {"v[:2]": [2, 1, 3]}, frozenset(("v[:2]",))) == ""
    assert compared(one, {"v[:2]": [3, 1, 4]}, frozenset(("v[:2]",)))
    assert compared(one, {"v[:2]": 3}, frozenset())
