// Objects of the standard's library, pointers to members, captured variables: what a trace shows
// of each is printed beside it, as the compiler sees it.
#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <complex>
#include <deque>
#include <forward_list>
#include <functional>
#include <initializer_list>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <stack>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "../addressbook/report.h"

#define KEPT __attribute__((noinline))
#define USE(e) asm volatile("" : : "r"(&(e)) : "memory")
// A value as JSON that printf cannot make of an expression alone.
#define JSON(e, ...) (FIELD("\"%s\": ", #e), std::printf(__VA_ARGS__))

struct Record {
    int id;
    std::string name;
};

struct Texts {
    std::string small, large, empty;
    std::string_view view;
    std::vector<std::string> many;
    std::pair<int, std::string> pair;
    std::tuple<int, std::string, double> tuple;
};

struct Holders {
    std::vector<int> ints;
    std::vector<Record> records;
    std::array<short, 3> row;
    std::unique_ptr<Record> unique;
    std::shared_ptr<Record> shared;
    std::weak_ptr<Record> weak;
    std::optional<int> some, none;
    std::optional<Record> record;
    std::variant<int, std::string, Record> variant;
    std::span<int> span;
    std::span<int, 3> three;
    std::atomic<int> number;
    std::atomic<Record *> first;
    std::bitset<70> bits;
    std::chrono::milliseconds milliseconds;
    std::complex<double> complex;
    std::error_code error;
    std::reference_wrapper<int> reference;
};

struct Counted {
    std::map<int, std::string> map;
    std::multimap<int, int> multimap;
    std::set<int> set;
    std::unordered_map<int, int> hashed;
    std::unordered_set<int> hashed_set;
    std::list<int> list;
    std::forward_list<int> forward;
    std::deque<int> deque;
    std::priority_queue<int> priorities;
};

struct Iterators {
    std::vector<int>::iterator vector;
    std::string::iterator string;
    std::list<int>::iterator list;
    std::deque<int>::iterator deque;
    std::set<int>::iterator set;
    std::map<int, std::string>::iterator map;
    std::unordered_map<int, int>::iterator hashed;
};

struct Pointed {
    int first, second;
    static int count;
    static constexpr long big = 1L << 40;
    KEPT int method(int more) const {
        USE(more);
        return first + more;
    }
};
int Pointed::count = 3;

namespace outer {
inline namespace v2 {
struct Kinds {
    enum class Colour : unsigned char { Red, Green = 5 } colour;
    enum Old { A, B = 3 } old;
    struct {
        int anonymous;
    } nested;
    union {
        int as_int;
        float as_float;
    };
};
}  // namespace v2
}  // namespace outer

KEPT int texts(Texts &of, std::string value, const std::string &reference) {
    USE(of);
    USE(value);
    USE(reference);
    return static_cast<int>(value.size());
}

KEPT int holders(Holders &of, const std::optional<int> &some, std::initializer_list<int> list) {
    USE(of);
    USE(some);
    USE(list);
    return of.row[0];
}

KEPT int counted(Counted &of, Iterators &at) {
    USE(of);
    USE(at);
    return static_cast<int>(of.map.size());
}

KEPT int pointed(int Pointed::*data, int (Pointed::*method)(int) const, Pointed &&moved,
                 outer::Kinds::Colour colour, outer::Kinds &kinds, int last) {
    USE(data);
    USE(method);
    USE(moved);
    USE(colour);
    USE(kinds);
    USE(last);
    return moved.*data + (moved.*method)(last);
}

static void call_texts(int round) {
    Texts of;
    of.small = "abc";
    of.large = std::string(21 + round, 'y');
    of.view = of.large;
    of.many = {"a", std::string(30, 'z')};
    of.pair = {16, "second"};
    of.tuple = {1, "in a tuple", 2.5};
    std::string value = "by value", reference(14 + 4 * round, 'r');
    BEGIN("texts");
    TEXT(of.small);
    TEXT(of.large);
    TEXT(of.empty);
    NUM(of.small.size());
    NUM(of.large.size());
    NUM(of.empty.size());
    AS("len(of.large)", of.large.size());
    TEXT(of.view);
    NUM(of.view.size());
    NUM(of.many.size());
    TEXT(of.many[0]);
    TEXT(of.many[1]);
    NUM(of.many[1].size());
    JSON(of.pair, "{\"first\": 16, \"second\": \"second\"}");
    TEXT(of.pair.second);
    JSON(of.tuple, "{\"0\": 1, \"1\": \"in a tuple\", \"2\": 2.5}");
    NUM(std::get<0>(of.tuple));
    TEXT(std::get<1>(of.tuple));
    NUM(std::get<1>(of.tuple).size());
    JSON(std::get<2>(of.tuple), "%g", std::get<2>(of.tuple));
    TEXT(value);
    NUM(value.size());
    TEXT(reference);
    NUM(reference.size());
    END();
    texts(of, value, reference);
}

static void call_holders(int round) {
    static int three[3] = {1, 2, 3};
    Holders of{.three = std::span<int, 3>(three), .reference = three[1]};
    of.ints = {4, -5, 6};
    of.records = {{1, "one"}, {2, "two"}, {3, "three"}};
    of.row = {7, 8, -9};
    of.unique.reset(new Record{13, "unique"});
    of.shared = std::make_shared<Record>(Record{14, "shared"});
    of.weak = of.shared;
    of.some = 10;
    of.record = Record{11, "in an optional"};
    if (round == 0)
        of.variant = 40;
    else if (round == 1)
        of.variant = "a text in a variant";
    else
        of.variant = Record{41, "in a variant"};
    of.span = of.ints;
    of.number = -15;
    of.first = of.unique.get();
    of.bits = 5;
    of.milliseconds = std::chrono::milliseconds(1500);
    of.complex = {1.5, 2};
    of.error = std::make_error_code(std::errc::invalid_argument);
    std::optional<int> some;
    if (round)
        some = round;
    BEGIN("holders");
    NUM(of.ints.size());
    AS("len(of.ints)", of.ints.size());
    NUM(of.ints.front());
    NUM(of.ints.back());
    JSON(of.ints, "[4, -5, 6]");
    NUM(of.records.size());
    TEXT(of.records[2].name);
    NUM(of.records.back().id);
    NUM(of.row.size());
    JSON(of.row, "[7, 8, -9]");
    NUM(std::get<2>(of.row));
    NUM(of.unique->id);
    TEXT(of.unique->name);
    TEXT(of.shared->name);
    JSON(of.some, "10");
    NUM(*of.some);
    FLAG(of.some.has_value());
    JSON(of.none, "null");
    FLAG(of.none.has_value());
    JSON(of.record, "{\"id\": 11, \"name\": \"in an optional\"}");
    TEXT(of.record->name);
    NUM(of.variant.index());
    if (round == 0)
        JSON(of.variant, "40");
    else if (round == 1)
        JSON(of.variant, "\"a text in a variant\"");
    else
        JSON(of.variant, "{\"id\": 41, \"name\": \"in a variant\"}");
    NUM(of.span.size());
    NUM(of.span[1]);
    NUM(of.three[2]);
    NUM(of.number);
    NUM(of.number.load());
    AS("of.first->id", of.first.load()->id);
    JSON(of.bits, "[5, 0]");
    AS("of.milliseconds", of.milliseconds.count());
    NUM(of.milliseconds.count());
    JSON(of.complex.real(), "%g", of.complex.real());
    NUM(of.error.value());
    NUM(of.reference.get());
    if (round)
        JSON(some, "%d", round);
    else
        JSON(some, "null");
    JSON(list, "[7, 8]");
    AS("list.size()", 2);
    AS("list[1]", 8);
    END();
    holders(of, some, {7, 8});
}

static void call_counted() {
    Counted of;
    of.map = {{1, "one"}, {2, "a text that is not small at all"}};
    of.multimap = {{1, 1}, {1, 2}, {1, 3}};
    of.set = {3, 4, 5, 6};
    of.hashed = {{1, 2}};
    of.hashed_set = {1, 2};
    of.list = {21, 22};
    of.forward = {1};
    of.deque = {31, 32, 33};
    of.priorities.push(9);
    std::vector<int> ints = {4, -5, 6};
    std::string text = "text";
    Iterators at{ints.begin() + 1,      text.begin() + 2, of.list.begin(),  of.deque.begin() + 1,
                 std::next(of.set.begin()), std::next(of.map.begin()), of.hashed.begin()};
    BEGIN("counted");
    NUM(of.map.size());
    NUM(of.multimap.size());
    NUM(of.set.size());
    NUM(of.hashed.size());
    NUM(of.hashed_set.size());
    NUM(of.list.size());
    NUM(of.priorities.size());
    NUM(of.priorities.top());
    NUM(*at.vector);
    JSON(*at.string, "\"%c\"", *at.string);
    NUM(*at.list);
    NUM(*at.deque);
    NUM(*at.set);
    NUM(at.map->first);
    TEXT(at.map->second);
    NUM(at.hashed->second);
    END();
    counted(of, at);
}

static void call_pointed() {
    Pointed pointed_to{1, 2};
    outer::Kinds kinds{outer::Kinds::Colour::Green, outer::Kinds::B, {11}, {12}};
    BEGIN("pointed");
    JSON(data, "{\"name\": \"&Pointed::second\", \"value\": 4}");
    AS("method.adj", 0);
    AS("moved.first", 1);
    AS("moved.count", 3);
    AS("moved.big", Pointed::big);
    JSON(colour, "{\"name\": \"Green\", \"value\": 5}");
    JSON(kinds.old, "{\"name\": \"B\", \"value\": 3}");
    NUM(kinds.nested.anonymous);
    NUM(kinds.as_int);
    AS("last", 5);
    END();
    pointed(&Pointed::second, &Pointed::method, std::move(pointed_to),
            outer::Kinds::Colour::Green, kinds, 5);
}

struct Maker {
    int member = 8;
    KEPT int make(int wide, const std::string &text) {
        auto lambda = [this, wide, &text](int given) KEPT {
            USE(given);
            USE(text);
            return given + wide + member + static_cast<int>(text.size());
        };
        BEGIN("operator()");
        AS("given", 6);
        NUM(wide);
        NUM(member);
        TEXT(text);
        NUM(text.size());
        END();
        return lambda(6);
    }
};

int main() {
    for (int round = 0; round < 3; round++) {
        call_texts(round);
        call_holders(round);
        call_counted();
        call_pointed();
        Maker{}.make(round, "captured");
    }
}
