/* The functions that tests probe. In this unit struct opaque is declared and not defined. */
#include "layouts.h"

int shared_counter = 1;
struct inner shared_inner = {2, 3};
int shared_grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
const char *shared_text = "shared";
struct node *shared_head;
__thread int per_thread = 4;

int visit(struct record *r, int depth) {
    int sum = r->i + depth;

    USE(r);
    USE(depth);
    return sum;
}

int flags(struct bits *b, struct packed *p) {
    USE(b);
    USE(p);
    return b->nine + p->value;
}

int by_value(struct one_register p, struct two_registers q, struct on_stack s, struct odd o,
             int after) {
    USE_AT(p);
    USE_AT(q);
    USE_AT(s);
    USE_AT(o);
    USE(after);
    return p.x + q.b + s.in.i + o.bytes[1] + after;
}

int with_floats(int n, struct int_and_float m, double d, float f, int last) {
    USE_AT(m);
    USE_AT(d);
    USE_AT(f);
    USE(last);
    return n + (int)(d + (double)f) + last;
}

int ten(int a, signed char b, unsigned short c, long d, double f1, unsigned char e, long f, long g,
        short h, float f2, long long i) {
    USE(a);
    USE(b);
    USE(c);
    USE(d);
    USE(e);
    USE(f);
    USE(g);
    USE(h);
    USE(i);
    USE_AT(f1);
    USE_AT(f2);
    return a + b + c + (int)d + e + (int)(f + g) + h + (int)i;
}

int chain(struct node *head, const char *const *words, char *text, struct inner (*rows)[2]) {
    USE(head);
    USE(words);
    USE(text);
    USE(rows);
    return head->value;
}

int globals(int n) {
    USE(n);
    return n + shared_counter + per_thread;
}

int look_inside(struct opaque *o, struct record *r) {
    USE(o);
    USE(r);
    return o != r->hidden;
}

int triple(int n) {
    USE(n);
    return 3 * n;
}

KEPT void swallow(int n) { USE(n); }

/* Optimised, n is gone after the first instructions and twice is never anywhere. */
int gone(int n) {
    int twice = 2 * n;
    int kept = shared_counter;

    kept += twice & 1;
    n = kept;
    USE(n);
    swallow(kept);
    return shared_counter;
}
