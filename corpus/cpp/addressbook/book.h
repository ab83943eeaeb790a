// The types that the probed functions are passed.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#define KEPT __attribute__((noinline, noclone))
#ifdef __clang__
#undef KEPT
#define KEPT __attribute__((noinline))
#endif
// Whatever is behind the pointer may be read here: nothing of it is optimised out.
#define USE(e) asm volatile("" : : "r"(&(e)) : "memory")

struct Contact {
    std::string firstName, lastName, number;
    int calls;
};

class AddressBook {
public:
    explicit AddressBook(int limit) : limit(limit) {}
    KEPT bool AddContact(std::string &firstName, std::string &lastName, std::string &number);
    KEPT bool AddContact(std::string const &firstName, int calls);
    template <class T> KEPT T Total(T base) const;
    virtual ~AddressBook();
    static int books;

private:
    std::vector<Contact> contacts;
    int limit;
};

struct Left {
    int left;
    virtual ~Left() = default;
};
struct Right {
    int right;
    virtual ~Right() = default;
};
struct Middle : Left {
    int middle;
};
struct Derived : Middle, Right {
    enum class Kind : short { Small = 1, Large = 300 };
    struct Inner {
        int i;
        union {
            int u;
            float f;
        };
    };
    int own;
    Kind kind;
    Inner inner;
    static int total;
    KEPT int Sum(int more);
};

namespace shapes {
namespace deep {
inline int counter = 9;
struct Point {
    int x, y;
};
}  // namespace deep
inline namespace v1 {
inline int hidden = 4;
}
using namespace deep;
template <class T, int N = 3> struct Box {
    T held[N];
};
}  // namespace shapes

struct Plain {
    int a;
    long b;
};
struct Copied {
    int a;
    explicit Copied(int a) : a(a) {}
    Copied(const Copied &other) : a(other.a) {}
};
struct Moved {
    int a;
    explicit Moved(int a) : a(a) {}
    Moved(const Moved &) = delete;
    Moved(Moved &&) = default;
};
struct Empty {};

struct Library {
    std::string small, large;
    std::string_view view;
    std::vector<Contact> contacts;
    std::vector<int> ints;
    std::array<short, 3> row;
    std::unique_ptr<Contact> unique;
    std::shared_ptr<Contact> shared;
    std::optional<int> option;
    std::optional<std::string> text;
    std::span<int> span;
    std::map<int, std::string> map;
    std::set<int> set;
    std::unordered_map<int, int> hashed;
    std::list<int> list;
    std::atomic<int> number;
    std::atomic<bool> flag;
    std::atomic<Contact *> first;
    std::pair<int, std::string> pair;
    std::unique_ptr<int[]> many;
};
