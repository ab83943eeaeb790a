/* What machines differ in: registers, words, byte order, where structures go. No library. */

struct pair { int first; short second; };
struct floats { float x, y; };
struct bits { unsigned low : 3; int middle : 7; unsigned short high : 9; };
struct large { long words[5]; };
struct node { int value; struct node *next; const char *label; };

static struct node last = { -7, 0, "last" };
struct node first = { 5, &last, "first" };
struct bits word = { 5, -3, 300 };
volatile int sink;

#define USED(e) __asm__ volatile("" ::"m"(e) : "memory")

__attribute__((noinline)) void numbers(signed char c, unsigned short s, int i, long long l, float f)
{
    USED(c); USED(s); USED(i); USED(l); USED(f);
}

__attribute__((noinline)) void structures(struct pair p, struct floats f, struct bits b,
                                          struct large w, int after)
{
    USED(p); USED(f); USED(b); USED(w); USED(after);
}

__attribute__((noinline)) void many(long a, long b, long c, long d, long e, long f, long g, long h,
                                    char ninth, struct pair tenth)
{
    USED(a); USED(b); USED(c); USED(d); USED(e); USED(f); USED(g); USED(h); USED(ninth); USED(tenth);
}

__attribute__((noinline)) int chain(struct node *n)
{
    USED(n);
    return n->value;
}

__attribute__((noinline)) struct pair twice(struct pair p)
{
    USED(p);
    return (struct pair){ 2 * p.first, 2 * p.second };
}

#ifdef __i386__
__attribute__((force_align_arg_pointer))
#endif
void _start(void)
{
    struct pair p = { 70000, -2 };
    struct floats f = { 1.5f, -2.25f };
    struct large w = { { 1, 2, 3, 4, 5 } };
    numbers(-1, 65535, -70000, -5000000000LL, 0.5f);
    structures(p, f, word, w, 9);
    many(1, 2, 3, 4, 5, 6, 7, 8, 'i', p);
    sink = chain(&first) + twice(p).first;
    for (;;);
}
