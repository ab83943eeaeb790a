"""Small programs with every kind of type, scope and function, built when a test asks.

Built once a run for each compiler and set of flags, in a directory of pytest's.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.toolchains import require

__all__ = ["CPP_SOURCE", "C_SOURCE", "OTHER_SOURCE", "build"]

C_SOURCE = """
#include <stddef.h>
#include <stdbool.h>
#include <complex.h>
#include <uchar.h>

enum color { RED, GREEN = 5, BLUE = 0xfffffff0u };
enum sign { MINUS = -3, PLUS = 7 };
typedef enum { ONE = 1 } tiny;
typedef unsigned int u32;
typedef u32 twice;
struct opaque;
struct other_only;

struct bits {
    int a : 3;
    unsigned b : 5;
    unsigned long long wide : 40;
    int : 4;
    signed char c : 2;
    bool flag : 1;
    u32 tail : 17;
};
struct packed { char c; int i : 20; short s : 9; } __attribute__((packed));
struct inner { long x; char text[16]; };
struct all {
    char c; signed char sc; unsigned char uc; short s; unsigned short us; int i; u32 u;
    long l; unsigned long ul; long long ll; float f; double d; long double ld;
    bool flag; float complex fc; double complex dc; char16_t c16; char32_t c32;
    enum color color; enum sign sign; tiny t; twice tw;
    const volatile int *cv; int *restrict pr; void *v; const char *text; char **argv;
    int (*callback)(struct all *, int);
    struct inner in; struct inner *next; struct opaque *hidden; struct other_only *other;
    struct { int anon_a; union { int anon_b; float anon_f; }; };
    union { long word; char bytes[8]; } named;
    int grid[2][3][4]; struct bits bit_array[3]; int none[0];
    struct all *self; _Alignas(32) int aligned; __int128 big;
};
struct flexible { int n; char data[]; };
typedef struct flexible flexible_t;
typedef float vec4 __attribute__((vector_size(16)));
struct vectors { vec4 v; };

int global_counter = 3;
static int file_static = 4;
extern int defined_elsewhere;
struct all everything;
struct packed packed_one;
struct bits bits_one;
struct flexible *flex;
flexible_t *flex2;
struct vectors vectors;
const char *const names[3] = {"a", "b", "c"};

extern int other(int);
static __attribute__((noinline)) int helper(int n) { return n * file_static; }
static inline __attribute__((always_inline)) int inlined(int n) { int k = n + 1; return k * 2; }
__attribute__((noinline)) int unused_args(int first, struct inner *second, char third)
{
    return helper(3);
}
__attribute__((noinline)) long by_value(struct inner in, int n, ...) { return in.x + n; }
__attribute__((noinline)) void nothing(void) { __asm__ volatile(""); }
__attribute__((noinline)) int scopes(int n)
{
    volatile int outer = n;
    if (n > 1) {
        volatile int inner = n + 1;
        { volatile long outer = inner; __asm__ volatile("nop" ::: "memory"); inner = (int)outer; }
        outer = inner;
    }
    return outer + inlined(n) + inlined(n + 2);
}
extern int aliased(int) __attribute__((alias("scopes")));
int main(int argc, char **argv)
{
    struct inner in = {1, "x"};
    nothing();
    everything.u = argc;
    return unused_args(argc, &in, 'c') + by_value(in, 2) + scopes(argc) + other(argc)
        + global_counter + helper(argc) + (int)bits_one.tail + packed_one.i
        + (flex ? flex->n : 0) + (flex2 ? 1 : 0) + (int)vectors.v[0] + names[argc % 3][0];
}
"""

OTHER_SOURCE = """
struct other_only { int here; struct other_only *next; };
struct opaque { double secret; };
struct inner { short unlike; };
int defined_elsewhere = 9;
static int file_static = 8;
struct inner unlike;
struct opaque opaque;
static __attribute__((noinline)) int helper(int n, int m) { return n + m + file_static; }
int other(int n)
{
    struct other_only o = {n, 0};
    return helper(o.here, (int)opaque.secret) + defined_elsewhere + unlike.unlike;
}
"""

CPP_SOURCE = """
namespace ns {
struct base { int b; };
struct other_base { long o; virtual ~other_base() {} };
inline namespace v1 { struct versioned { int v; }; }
enum class level : unsigned char { low, high = 200 };
class derived : public base, public other_base {
public:
    static int count;
    static const int fixed = 3;
    int d; level lv; int base::*member; int (base::*method)(int);
    derived(int n);
    int visit(int n);
    struct nested { short s; } inside;
};
int derived::count = 7;
int inside = 5;
}
namespace { struct unnamed { char c; }; int hidden(unnamed *u) { return u->c; } int quiet = 6; }
struct top { virtual int f() { return 1; } int t; };
struct left : virtual top { int l; };
template <typename T> struct box { T value; T &ref; T &&moved; };
template <typename T> __attribute__((noinline)) T largest(T a, T b) { return a > b ? a : b; }
struct trivial { int x; };
struct complicated { complicated(const complicated &); complicated(); ~complicated(); int x; };
complicated::complicated(const complicated &) : x(1) {}
complicated::complicated() : x(2) {}
complicated::~complicated() {}
int take(complicated c, trivial t) { return c.x + t.x; }
__attribute__((noinline)) ns::derived::derived(int n) : d(n) {}
__attribute__((noinline)) int ns::derived::visit(int n) { return n + d + inside.s; }
int wide(wchar_t w, char16_t c, decltype(nullptr) n, bool b) { return w + c + b + (n == nullptr); }
template <typename... Ts> __attribute__((noinline)) int pack(Ts... rest) { return sizeof...(rest); }
int main(int argc, char **)
{
    ns::derived d(argc); unnamed u{'c'}; left l; ns::versioned v{1}; int n = argc;
    box<int> b{argc, n, static_cast<int &&>(n)};
    return d.visit(2) + hidden(&u) + l.f() + v.v + largest(argc, 3) + (int)largest(1.5, 2.5)
        + b.value + take(complicated(), trivial{1}) + wide(L'x', u'y', nullptr, true) + quiet
        + pack(argc, 'c') + ns::inside + ns::derived::count;
}
"""


def build(directory: Path, compiler: str, *flags: str) -> Path:
    """The program of ``compiler`` (gcc, clang, g++, clang++) with ``flags``, in ``directory``."""
    require(compiler)
    name = "-".join([compiler, *flags]).replace("/", "_").replace("=", "_")
    program = directory / name
    if program.exists():
        return program
    if compiler.endswith("++"):
        sources = [directory / "program.cc"]
        sources[0].write_text(CPP_SOURCE)
    else:
        sources = [directory / "program.c", directory / "other.c"]
        sources[0].write_text(C_SOURCE)
        sources[1].write_text(OTHER_SOURCE)
    command = [compiler, "-g", "-w", *flags, "-o", str(program), *map(str, sources)]
    subprocess.run(command, check=True, timeout=60)
    return program
