// What a reader computes or picks: sizes of deques, flags in words, adaptors, wide texts; and the
// shape of Boost's smart pointers. What a trace shows of each is printed beside it.
#include <array>
#include <atomic>
#include <bitset>
#include <deque>
#include <forward_list>
#include <list>
#include <memory>
#include <mutex>
#include <queue>
#include <set>
#include <span>
#include <stack>
#include <string>
#include <string_view>
#include <vector>

#include "../addressbook/report.h"

#define KEPT __attribute__((noinline))
#define USE(e) asm volatile("" : : "r"(&(e)) : "memory")
#define NTH(of, i, more) ((of).size() > (i) ? AS(#of "[" #i "]" #more, (of)[i]more) : AS_NULL(#of "[" #i "]" #more))
#define AS_NULL(e) (FIELD("\"%s\": ", e), std::printf("null"))
#define JSON(e, ...) (FIELD("\"%s\": ", #e), std::printf(__VA_ARGS__))

// The members that boost/smart_ptr of Boost 1.74 has, without what it does.
namespace boost {
namespace detail {
struct sp_counted_base {
    virtual ~sp_counted_base() = default;
    std::atomic<int> use_count_{3}, weak_count_{1};
};
struct shared_count {
    sp_counted_base *pi_;
};
}  // namespace detail
template <class T>
struct shared_ptr {
    T *px;
    detail::shared_count pn;
};
template <class T>
struct intrusive_ptr {
    T *px;
};
template <class T>
struct scoped_ptr {
    T *px;
};
template <class T>
struct shared_array {
    T *px;
    detail::shared_count pn;
};
}  // namespace boost

struct Record {
    int id;
    std::string name;
};
struct Large {
    int id;
    char bytes[600];
};

struct Middle {
    long id;
    char rest[120];
};

struct Deques {
    std::deque<int> ints, turned;
    std::deque<Record> both;
    std::deque<Middle> middles;
    std::deque<std::vector<int>> vectors;
    std::deque<Record *> pointers;
    std::deque<Record> records;
    std::deque<Large> large;
    std::deque<int> empty;
    std::stack<int> stack;
    std::queue<Record> queue;
};

struct Packed {
    std::vector<bool> flags;
    std::vector<bool> none;
    std::bitset<5> few;
    std::bitset<130> many;
    std::array<int, 3> row;
    std::array<int, 0> zero;
    std::span<int, 3> three;
    std::atomic<double> number;
    std::atomic_flag flag;
    std::mutex mutex, free;
};

struct Adapted {
    std::stack<int, std::vector<int>> stack;
    std::queue<Record, std::list<Record>> queue;
    std::priority_queue<int> priorities;
    std::list<Record> list;
    std::forward_list<int> forward, nowhere;
    std::set<int> set, nothing;
    std::vector<Record> vector;
    std::string text, no_text;
    std::shared_ptr<Record> shared, again;
    std::weak_ptr<Record> weak;
};

struct Wide {
    std::wstring wide, long_wide;
    std::u16string sixteen, no_sixteen;
    std::u32string thirty_two;
    std::u8string eight;
    std::wstring_view view;
    std::u16string_view view16;
};

struct Boosted {
    boost::shared_ptr<Record> shared;
    boost::intrusive_ptr<Record> intrusive;
    boost::scoped_ptr<Record> scoped;
    boost::shared_array<int> array;
};

KEPT int deques(Deques &of) {
    USE(of);
    return static_cast<int>(of.ints.size());
}

KEPT int elements(Deques &of) {
    USE(of);
    return static_cast<int>(of.turned.size());
}

KEPT int packed(Packed &of) {
    USE(of);
    return of.row[0];
}

KEPT int adapted(Adapted &of) {
    USE(of);
    return of.stack.top();
}

KEPT int wide(Wide &of, const std::u32string &reference) {
    USE(of);
    USE(reference);
    return static_cast<int>(of.wide.size());
}

KEPT int boosted(Boosted &of) {
    USE(of);
    return of.shared.px->id;
}

static void call_deques(int round) {
    // A block of libstdc++ has 128 ints, one of libc++ 1024: full ones, and all but full ones.
    static const int counts[] = {1, 127, 128, 256, 1024, 1300}, taken[] = {0, 3, 127, 128, 700, 1};
    Deques of;
    for (int i = 0; i < counts[round]; i++)
        of.ints.push_back(i), of.stack.push(2 * i);
    for (int i = 0; i < taken[round] && of.ints.size() > 1; i++)
        of.ints.pop_front();
    for (int i = 0; i <= 13 * round; i++)
        of.records.push_back({i, "number " + std::to_string(i)}), of.queue.push(of.records.back());
    if (round > 2)
        of.queue.pop(), of.records.push_front({-1, "first"});
    of.large.resize(round);
    BEGIN("deques");
    NUM(of.ints.size());
    AS("len(of.ints)", of.ints.size());
    AS("of.ints", of.ints.size());
    AS("of.queue", of.queue.size());
    NUM(of.records.size());
    NUM(of.large.size());
    NUM(of.empty.size());
    NUM(of.stack.size());
    NUM(of.queue.size());
    FLAG(of.ints.empty());
    FLAG(of.empty.empty());
    FLAG(of.large.empty());
    FLAG(of.stack.empty());
    FLAG(of.queue.empty());
#ifndef _LIBCPP_VERSION
    NUM(of.ints.front());
    NUM(of.ints.back());
    NTH(of.ints, 20, );
    NTH(of.ints, 100, );
    NTH(of.ints, 300, );
    TEXT(of.records.front().name);
    JSON(of.records.back(), "{\"id\": %d, \"name\": \"number %d\"}", 13 * round, 13 * round);
    NUM(of.stack.top());
    TEXT(of.queue.front().name);
    JSON(of.queue.back(), "{\"id\": %d, \"name\": \"number %d\"}", 13 * round, 13 * round);
#endif
    END();
    deques(of);
}

static void call_elements(int round) {
    Deques of;
    // At the front of a block: 2 * round of its last ones, at round 0 the first ones of the next.
    for (int i = 0; i <= 2 * round; i++) {
        of.turned.push_front(-i), of.both.push_front({-i, "front"}), of.middles.push_front({-i});
        of.vectors.push_front({-i, i}), of.pointers.push_front(&of.both.front());
    }
    for (int i = 1; i <= 10 + round; i++) {
        of.turned.push_back(i), of.both.push_back({i, "back"}), of.middles.push_back({i});
        of.vectors.push_back({i, -i}), of.pointers.push_back(&of.both.back());
        of.large.push_back({10 * i, ""});
    }
    of.turned.pop_front(), of.both.pop_front(), of.middles.pop_front(), of.vectors.pop_front();
    of.pointers.pop_front(), of.turned.pop_back(), of.vectors.pop_back(), of.pointers.pop_back();
    BEGIN("elements");
    NUM(of.turned.size());
#ifndef _LIBCPP_VERSION
    NTH(of.turned, 0, );
    NTH(of.turned, 1, );
    NTH(of.turned, 4, );
    NTH(of.turned, 9, );
    NTH(of.turned, 12, );
    NTH(of.turned, 15, );
    NTH(of.both, 1, .id);
    NTH(of.both, 8, .id);
    NTH(of.both, 13, .id);
    NTH(of.both, 15, .id);
    TEXT(of.both[6].name);
    NTH(of.middles, 3, .id);
    NTH(of.middles, 17, .id);
    NTH(of.vectors, 3, [1]);
    NTH(of.vectors, 5, .size());
    AS("len(of.vectors[2])", of.vectors[2].size());
    NTH(of.pointers, 7, ->id);
    NTH(of.large, 2, .id);
#endif
    END();
    elements(of);
}

static void call_packed(int round) {
    static int three[3] = {11, 12, 13};
    Packed of{.three = std::span<int, 3>(three)};
    for (int i = 0; i < 40 * round + 33; i++)
        of.flags.push_back(i % 3 == 0);
    of.few = 6;
    of.many[round] = of.many[129] = true;
    of.row = {1, 2, -3};
    of.number = 1.5 + round;
    if (round % 2)
        of.flag.test_and_set();
    of.mutex.lock();
    BEGIN("packed");
    NUM(of.flags.size());
    NUM(of.none.size());
    FLAG(of.flags.empty());
    FLAG(of.none.empty());
    FLAG(of.flags[0]);
    FLAG(of.flags[1]);
    FLAG(of.flags[32]);
    NUM(of.few.size());
    NUM(of.many.size());
    FLAG(of.few[0]);
    FLAG(of.few[2]);
    FLAG(of.many[2]);
    FLAG(of.many[129]);
    NUM(of.row.size());
    NUM(of.row.front());
    NUM(of.row.back());
    FLAG(of.row.empty());
    NUM(of.zero.size());
    FLAG(of.zero.empty());
    NUM(of.three.size());
    NUM(of.three.back());
    JSON(of.three, "[11, 12, 13]");
    JSON(of.number, "%g", of.number.load());
    JSON(of.flag, round % 2 ? "true" : "false");
    AS("of.free", 0);
    END();
    packed(of);
    of.mutex.unlock();
}

static void call_adapted(int round) {
    Adapted of;
    for (int i = 0; i <= round; i++) {
        of.stack.push(i), of.priorities.push(-i), of.forward.push_front(i), of.set.insert(i);
        of.queue.push({i, "queue " + std::to_string(i)});
        of.list.push_back({10 + i, "list " + std::to_string(i)});
    }
    of.vector.reserve(7);
    of.text = std::string(7 * round, 't');
    of.shared = of.again = std::make_shared<Record>();
    of.weak = of.shared;
    BEGIN("adapted");
    NUM(of.stack.size());
    NUM(of.stack.top());
    FLAG(of.stack.empty());
    NUM(of.queue.size());
    TEXT(of.queue.front().name);
    TEXT(of.queue.back().name);
    NUM(of.priorities.size());
    NUM(of.priorities.top());
    NUM(of.list.front().id);
    TEXT(of.list.back().name);
    FLAG(of.list.empty());
    NUM(of.forward.front());
    FLAG(of.forward.empty());
    FLAG(of.nowhere.empty());
    AS("of.set", of.set.size());
    FLAG(of.set.empty());
    FLAG(of.nothing.empty());
    NUM(of.vector.size());
    NUM(of.vector.capacity());
    FLAG(of.vector.empty());
    FLAG(of.text.empty());
    FLAG(of.no_text.empty());
    NUM(of.shared.use_count());
    NUM(of.weak.use_count());
    END();
    adapted(of);
}

static void call_wide(int round) {
    Wide of;
    of.wide = std::wstring(round, L'w') + L"\u00e9";
    of.long_wide = std::wstring(40, L'l');
    of.sixteen = std::u16string(2 * round, u's') + u"\U0001f600";
    of.thirty_two = std::u32string(round, U't') + U"\U0001f600";
    of.eight = std::u8string(round, u8'e') + u8"\u00e9";
    of.view = of.long_wide;
    of.view16 = of.sixteen;
    std::u32string reference(3 * round, U'r');
    std::string letters(40, 'w');
    const char *w = letters.c_str() + 40 - round, *l = "llllllllllllllllllllllllllllllllllllllll";
    std::string s(2 * round, 's'), t(round, 't'), e(round, 'e'), r(3 * round, 'r');
    BEGIN("wide");
    JSON(of.wide, "\"%s\u00e9\"", w);
    JSON(of.long_wide, "\"%s\"", l);
    JSON(of.sixteen, "\"%s\U0001f600\"", s.c_str());
    JSON(of.no_sixteen, "\"\"");
    JSON(of.thirty_two, "\"%s\U0001f600\"", t.c_str());
    JSON(of.eight, "\"%s\u00e9\"", e.c_str());
    JSON(of.view, "\"%s\"", l);
    JSON(of.view16, "\"%s\U0001f600\"", s.c_str());
    JSON(reference, "\"%s\"", r.c_str());
    NUM(of.wide.size());
    NUM(of.sixteen.size());
    NUM(of.view.size());
    FLAG(of.no_sixteen.empty());
    END();
    wide(of, reference);
}

static void call_boosted(int round) {
    static Record record{5, "record"};
    static int ints[] = {1, 2, 3};
    boost::detail::sp_counted_base count;
    count.use_count_ = round + 1;
    Boosted of{{&record, {&count}}, {&record}, {&record}, {ints, {&count}}};
    BEGIN("boosted");
    AS("of.shared->id", 5);
    AS_TEXT("of.shared->name", "record");
    JSON(*of.shared, "{\"id\": 5, \"name\": \"record\"}");
    AS("of.shared.use_count()", round + 1);
    AS_TEXT("of.intrusive->name", "record");
    AS("of.scoped->id", 5);
    JSON(*of.scoped, "{\"id\": 5, \"name\": \"record\"}");
    AS("of.array[2]", 3);
    END();
    boosted(of);
}

int main() {
    for (int round = 0; round < 6; round++) {
        call_deques(round);
        call_elements(round);
        call_packed(round);
        call_adapted(round);
        call_wide(round);
        call_boosted(round);
    }
}
