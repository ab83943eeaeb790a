// Names as C++ looks them up: through aliases, directives and declarations of namespaces, through
// bases of classes, within functions and files, of enumerations; and casts that have names.
#include <cstdio>

#include "../addressbook/report.h"
#include "names.h"

#define USE(e) asm volatile("" : : "g"(e) : "memory")

static int hidden = 61;
namespace {
volatile int unseen = 62;
}

namespace outer {
int both = 1;
namespace inner {
int deep = 11;
int both = 12;
namespace third {
int leaf = 33;
struct Held {
    int value;
};
}  // namespace third
inline namespace v2 {
int versioned = 34;
}
}  // namespace inner
using inner::third::leaf;
namespace first {
int common = 21;
}
namespace second {
int common = 22;
int lone = 23;
}  // namespace second
using namespace first;
using namespace second;
}  // namespace outer
namespace chained {
using namespace outer;
}
namespace alias = outer::inner;
namespace longer = alias::third;

namespace shadow {
namespace within {
int plain = 71;
}
}  // namespace shadow
int plain = 72;
int taken = 73;
namespace lent {
int taken = 74;
}
namespace taker {
using lent::taken;
}

enum Color { RED = -1, GREEN = 5 };
enum class Mode : unsigned char { Off = 3, On = 7 };
namespace ns {
enum Kind { KIND_A = 9, GREEN_KIND };
struct Class {
    enum { LIMIT = 40 };
    enum class Way { Up = 2 };
    static const int CONSTANT = 6;
    static int count;
    int own;
    int method(int n);
};
int Class::count = 17;
}  // namespace ns

struct Base {
    int i;
    static int shared;
    enum { OF_BASE = 51 };
};
int Base::shared = 21;
struct Other {
    int i;
    static int lonely;
};
int Other::lonely = 24;
struct Derived : Other, Base {
    int i;
    int method(int n);
};
struct Lower : Derived {
    int method(int n);
};

__attribute__((noinline)) int counting(int by) {
    static int counter = 100;
    counter += by;
    if (by > 1) {
        static int inner_counter = 200;
        inner_counter += by;
        USE(inner_counter);
    }
    return counter;
}

__attribute__((noinline)) int Derived::method(int n) {
    USE(this);
    return n + Base::i + Other::i + i;
}
__attribute__((noinline)) int Lower::method(int n) {
    USE(this);
    return n + Base::i + Other::i + i;
}
__attribute__((noinline)) int ns::Class::method(int n) {
    static int calls = 300;
    calls += n;
    USE(this);
    return n + calls;
}
namespace shadow {
__attribute__((noinline)) int see(int n) {
    USE(within::plain);
    return n + plain;
}
}  // namespace shadow
namespace taker {
__attribute__((noinline)) int see(int n) { return n + taken; }
}  // namespace taker
__attribute__((noinline)) int look(int n) {
    return n + alias::deep + longer::leaf + chained::lone;
}
__attribute__((noinline)) int classes(Derived *d, Lower *l, Mode m, void *raw) {
    USE(d);
    USE(raw);
    return d->i + static_cast<int>(m) + l->i;
}
__attribute__((noinline)) int größe(int länge, int नमस्ते) {
    USE(länge);
    return länge + नमस्ते;
}

static void use_all() {
    USE(hidden);
    USE(unseen);
    USE(plain);
    USE(taken);
    USE(outer::both);
    USE(alias::both);
    USE(alias::versioned);
    USE(outer::first::common);
    USE(outer::second::common);
    USE(Other::lonely);
    USE(Base::shared);
    USE(ns::Class::count);
    USE(ns::KIND_A);
    USE(ns::Class::LIMIT);
    USE(Base::OF_BASE);
    ns::Class::Way way = ns::Class::Way::Up;
    USE(static_cast<int>(way));
    longer::Held held{};
    USE(&held);
}

static void of_scopes() {
    BEGIN("look");
    NUM(outer::inner::deep);
    NUM(alias::deep);
    NUM(::alias::deep);
    NUM(::outer::both);
    NUM(longer::leaf);
    NUM(alias::third::leaf);
    NUM(outer::leaf);
    NUM(outer::lone);
    NUM(chained::lone);
    NUM(chained::leaf);
    NUM(outer::both);
    NUM(alias::both);
    NUM(alias::versioned);
    NUM(alias::v2::versioned);
    NUM(outer::first::common);
    NUM(::plain);
    NUM(plain);
    NUM(taker::taken);
    NUM(unseen);
    AS("'names.cc'::hidden", hidden);
    AS("'other.cc'::hidden", hidden_elsewhere());
    NUM(sizeof(longer::Held));
}

static void of_enumerations() {
    AS("GREEN:s32", GREEN);
    AS("RED:s32", RED);
    AS("Color::GREEN:s32", Color::GREEN);
    AS("Mode::On:u8", static_cast<int>(Mode::On));
    AS("ns::KIND_A:u32", ns::KIND_A);
    AS("ns::Kind::KIND_A:u32", ns::Kind::KIND_A);
    AS("ns::Class::LIMIT:u32", ns::Class::LIMIT);
    AS("ns::Class::Way::Up:s32", static_cast<int>(ns::Class::Way::Up));
    NUM(ns::Class::CONSTANT);
    END();
}

static void of_classes(Derived *d, Lower *l, Mode m, void *raw) {
    ns::Class object{};
    BEGIN("classes");
    NUM(Derived::shared);
    NUM(::Derived::shared);
    NUM(Lower::lonely);
    NUM(Lower::shared);
    NUM(ns::Class::count);
    AS("counting::counter", counting(0));
    AS("ns::Class::method::calls", object.method(0));
    AS("'names.cc'::counting::counter", counting(0));
    NUM(d->Base::i);
    NUM(d->Other::i);
    NUM(d->Derived::i);
    NUM(l->Base::i);
    NUM(static_cast<Base *>(d)->i);
    NUM(static_cast<Base &>(*d).i);
    NUM(reinterpret_cast<Base *>(d)->i);
    NUM(static_cast<Derived *>(raw)->i);
    NUM(const_cast<Derived *>(d)->i);
    NUM(static_cast<int>(m));
    END();
}

int main() {
    int here = 0;
    for (int round = 0; round < 3; round++) {
        hidden += round;
        use_all();
        elsewhere(round);
        Lower lower{};
        lower.Other::i = round + 1;
        lower.Base::i = round + 2;
        lower.Derived::i = round + 3;
        Derived *d = &lower;
        counting(round);
        of_scopes();
        of_enumerations();
        here += look(round);
        of_classes(d, &lower, Mode::On, d);
        here += classes(d, &lower, Mode::On, d);
        BEGIN("Derived::method");
        AS("Base::i", d->Base::i);
        AS("Other::i", d->Other::i);
        AS("Derived::i", d->Derived::i);
        AS("i", d->Derived::i);
        AS("shared", Base::shared);
        AS("Derived::lonely", Other::lonely);
        AS("this->Base::i", d->Base::i);
        END();
        here += d->method(round);
        BEGIN("Lower::method");
        AS("i", lower.i);
        AS("Base::i", lower.Base::i);
        AS("Derived::i", lower.Derived::i);
        AS("OF_BASE:u32", Lower::OF_BASE);
        END();
        here += lower.method(round);
        BEGIN("shadow::see");
        AS("plain", plain);
        AS("within::plain", shadow::within::plain);
        AS("::plain", plain);
        END();
        here += shadow::see(round);
        BEGIN("taker::see");
        AS("taken", lent::taken);
        AS("::taken", ::taken);
        END();
        here += taker::see(round);
        BEGIN("größe");
        AS("länge", round + 4);
        AS("नमस्ते", round + 5);
        END();
        here += größe(round + 4, round + 5);
    }
    return here == 0;
}
