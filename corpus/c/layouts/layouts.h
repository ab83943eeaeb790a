/* Types and functions that the three units of the program share. */
#ifndef LAYOUTS_H
#define LAYOUTS_H

#include <stdbool.h>
#include <stddef.h>

/* Nothing may be inlined, cloned or have its unused parameters dropped: a live test
 * compares every parameter with what the caller printed. */
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif
#define USE(value) __asm__ volatile("" : : "g"(value) : "memory")
#define USE_AT(object) __asm__ volatile("" : : "r"(&(object)) : "memory")

enum colour { RED, GREEN = 5, BLUE = 4000000000u };
enum side { LEFT = -2, MIDDLE, RIGHT };
enum __attribute__((packed)) tiny { TINY_NONE, TINY_SOME = 200 };
enum wide { WIDE_ZERO, WIDE_HUGE = 0x100000001ull };

struct inner {
    short s;
    int i;
};

struct bits {
    unsigned one : 1;
    int five : 5;
    unsigned seventeen : 17;
    int nine : 9;
    unsigned long long forty : 40;
    signed char three : 3;
    bool truth : 1;
    unsigned : 0;
    unsigned most : 31;
    long long negative : 33;
    enum side shade : 3;
};

struct __attribute__((packed)) packed {
    char tag;
    int value;
    short row[3];
    unsigned low : 3;
    int across : 12;
    unsigned long long high : 50;
    long long big;
};

union number {
    int i;
    unsigned char bytes[8];
    float f;
    struct {
        unsigned short low, high;
    } half;
};

struct opaque; /* completed in other.c only */
struct node {
    int value;
    struct node *next;
    const char *label;
};

typedef unsigned int hertz;
typedef int (*handler)(struct node *, int);

struct record {
    char c;
    signed char sc;
    unsigned char uc;
    bool yes;
    short sh;
    unsigned short ush;
    int i;
    unsigned u;
    long l;
    unsigned long ul;
    float f;
    double d;
    hertz clock;
    const volatile int cv;
    enum colour colour;
    enum side side;
    enum tiny tiny;
    enum wide wide;
    struct inner in;
    struct inner *to;
    union number number;
    struct {
        int first;
        union {
            int second;
            char letters[4];
        };
    };
    char name[16];
    char four[4]; /* filled to the brim: no NUL, and more text behind it */
    char more[4];
    char *text;
    const char *const fixed;
    int grid[2][3];
    short cube[2][2][2];
    struct inner list[3];
    struct inner *pointers[2];
    const char *words[3];
    handler act;
    void *raw;
    struct record *self;
    struct opaque *hidden;
    struct node *head;
    size_t count;
    struct inner tail[]; /* flexible: count entries */
};

struct one_register { int x, y; };
struct two_registers { long a; unsigned short b; char c; };
struct int_and_float { long n; double d; };
struct on_stack { long a[4]; struct inner in; char name[8]; };
struct odd { char bytes[3]; };

extern int shared_counter;
extern struct inner shared_inner;
extern int shared_grid[2][3];
extern const char *shared_text;
extern struct node *shared_head;
extern __thread int per_thread;

KEPT int visit(struct record *r, int depth);
KEPT int flags(struct bits *b, struct packed *p);
KEPT int by_value(struct one_register p, struct two_registers q, struct on_stack s,
                  struct odd o, int after);
KEPT int with_floats(int n, struct int_and_float m, double d, float f, int last);
KEPT int ten(int a, signed char b, unsigned short c, long d, double f1, unsigned char e, long f,
             long g, short h, float f2, long long i);
KEPT int chain(struct node *head, const char *const *words, char *text, struct inner (*rows)[2]);
KEPT int globals(int n);
KEPT int look_inside(struct opaque *o, struct record *r);
KEPT int statics_here(int n);
KEPT int statics_there(int n);
KEPT int triple(int n);
KEPT int gone(int n);
KEPT void swallow(int n);
int call_twin_here(struct inner *it);
int call_twin_there(int wide, struct node *it);
struct opaque *make_opaque(int round);

#endif
