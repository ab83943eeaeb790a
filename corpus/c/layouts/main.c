/* A program with every layout that C has, for tests of fetchc.
 *
 * Before each call it prints one line for the function it calls,
 *
 *     EVENT <function> {"<expression>": <value>, ...}
 *
 * with the values at the function's entry ("<function>%return" after the call, at its return).
 * It makes the same calls in every run and ends.
 */
#include <stdlib.h>
#include <string.h>

#include "layouts.h"
#include "report.h"

/* These know what only other.c knows. */
void report_opaque(struct opaque *o, struct record *r);
void report_statics_there(int n);

static int file_counter = 17; /* another of this name is in other.c */
static struct inner file_inner = {-3, 33};

KEPT static int twin(struct inner *it) {
    USE(it);
    return it->i + file_counter;
}

int call_twin_here(struct inner *it) { return twin(it); }

/* Probed for the file statics: a name means the one of the function's own unit. */
KEPT int statics_here(int n) {
    USE(n);
    return n + file_counter + file_inner.i;
}

/* Free for the optimiser to change its signature: gcc makes a clone without the factor. */
__attribute__((noinline)) static int scaled(struct inner *it, int factor) {
    USE(it->i);
    return it->i * factor;
}

static int act(struct node *n, int by) { return n->value * by; }

static struct record *make_record(int round, struct node *head) {
    static struct inner spare[2] = {{-11, 1100}, {12, -1200}};
    struct record *r = calloc(1, sizeof *r + 3 * sizeof r->tail[0]);
    char *fixed = malloc(16);

    if (!r || !fixed) exit(1);
    sprintf(fixed, "fixed-%d", round);
    r->c = (char)('a' + round);
    r->sc = (signed char)(-100 - round);
    r->uc = (unsigned char)(250 + round);
    r->yes = round != 1;
    r->sh = (short)(-32768 + round);
    r->ush = (unsigned short)(65535 - round);
    r->i = -2147483647 - 1 + round;
    r->u = 4294967295u - (unsigned)round;
    r->l = -9000000000000000000l + round;
    r->ul = 18446744073709551615ul - (unsigned long)round;
    r->f = 0.1f * (float)(round + 1);
    r->d = -1e-300 / (round + 1);
    r->clock = 3000000000u + (unsigned)round;
    *(int *)&r->cv = round - 1000;
    r->colour = round == 0 ? RED : round == 1 ? GREEN : BLUE;
    r->side = (enum side)(round - 2);
    r->tiny = round == 1 ? TINY_NONE : TINY_SOME;
    r->wide = round == 1 ? WIDE_ZERO : WIDE_HUGE;
    r->in.s = (short)-round;
    r->in.i = 77 + round;
    r->to = &spare[round % 2];
    r->number.f = -2.5f * (float)(round + 1);
    r->number.bytes[7] = (unsigned char)(200 + round);
    r->first = round;
    r->second = 0x64636200 + 'a' + round;
    sprintf(r->name, "record %d", round);
    memcpy(r->four, "abcd", 4);
    memcpy(r->more, "efg", 4);
    r->text = r->name + 3;
    memcpy((void *)&r->fixed, &fixed, sizeof fixed);
    for (int i = 0; i < 6; i++) r->grid[i / 3][i % 3] = i * 100 - round;
    for (int i = 0; i < 8; i++) r->cube[i / 4][i / 2 % 2][i % 2] = (short)(-i * 1000 - round);
    for (int i = 0; i < 3; i++) {
        r->list[i].s = (short)(i - 5);
        r->list[i].i = i * round;
        r->tail[i].s = (short)(50 + i);
        r->tail[i].i = -i * 1000000 - round;
    }
    r->pointers[0] = &spare[0];
    r->pointers[1] = &spare[1];
    r->words[0] = "zero";
    r->words[1] = "one";
    r->words[2] = r->name;
    r->act = act;
    r->raw = &r->in;
    r->self = r;
    r->hidden = make_opaque(round);
    r->head = head;
    r->count = 3;
    return r;
}

/* As the kernel knows this task; the name of the fixture, cut to 15 characters. */
static const char *comm(void) {
    static char name[32];
    FILE *file = fopen("/proc/self/comm", "r");

    if (!file || !fgets(name, sizeof name, file)) exit(1);
    fclose(file);
    name[strcspn(name, "\n")] = 0;
    return name;
}

static void report_visit(struct record *r, int depth, const char *colour, const char *side,
                         const char *tiny, const char *wide) {
    BEGIN("visit");
    NUM(depth), ADDR(r), AS("$arg1", (unsigned long)r), AS_TEXT("$comm", comm());
    NUM(r->sc), NUM(r->uc), FLAG(r->yes), NUM(r->sh), NUM(r->ush), NUM(r->i), UNUM(r->u);
    NUM(r->l), UNUM(r->ul), REAL(r->f), REAL(r->d), NUM(r->clock), NUM(r->cv);
    ENUM(r->colour, colour), ENUM(r->side, side), ENUM(r->tiny, tiny), ENUM(r->wide, wide);
    NUM(r->in.s), NUM(r->in.i), NUM(r->to->s), NUM(r->to->i), NUM((*r).in.i), NUM(r->to[0].i);
    NUM(r->number.i), NUM(r->number.bytes[7]), NUM(r->number.half.high), REAL(r->number.f);
    NUM(r->first), NUM(r->second), NUM(r->letters[0]), NUM(r->letters[3]);
    TEXT(r->name), TEXT_OF(r->four, 4), TEXT(r->more), TEXT(r->text), TEXT(r->fixed);
    NUM(r->grid[0][2]), NUM(r->grid[1][1]), LIST(r->grid[1], 3), NUM(r->cube[1][0][1]);
    NUM(r->list[0].s), NUM(r->list[2].s), NUM(r->list[2].i);
    NUM(r->pointers[1]->i), NUM(r->pointers[0]->s);
    TEXT(r->words[1]), TEXT(r->words[2]);
    ADDR(r->act), ADDR(r->raw), ADDR(r->self), NUM(r->self->self->in.i);
    NUM(r->count), NUM(r->tail[0].s), NUM(r->tail[2].i);
    NUM(r->head->next->value), TEXT(r->head->next->label);
    NUM(((struct inner *)r->raw)->i), UNUM((unsigned char)r->i), NUM((short)r->u);
    END();
}

static void report_flags(struct bits *b, struct packed *p, const char *shade) {
    BEGIN("flags");
    NUM(b->one), NUM(b->five), NUM(b->seventeen), NUM(b->nine), UNUM(b->forty), NUM(b->three);
    FLAG(b->truth), NUM(b->most), NUM(b->negative), ENUM(b->shade, shade);
    NUM(p->tag), NUM(p->value), NUM(p->row[2]), LIST(p->row, 3), NUM(p->low), NUM(p->across);
    UNUM(p->high), NUM(p->big);
    END();
}

static void call_with_values(int round) {
    struct one_register p = {-5 - round, 6 + round};
    struct two_registers q = {-(1l << 40), (unsigned short)(65000 + round), (char)-round};
    struct on_stack s = {{1, -2, 3, -round}, {(short)(-7 - round), 70}, "on top"};
    struct odd o = {{'x', 'y', (char)('0' + round)}};
    struct int_and_float m = {-123456789012l - round, 0.75 * round};
    int after = 99 - round;

    BEGIN("by_value");
    NUM(p.x), NUM(p.y), NUM(q.a), NUM(q.b), NUM(q.c);
    NUM(s.a[1]), NUM(s.a[3]), NUM(s.in.s), NUM(s.in.i), TEXT(s.name), LIST(s.a, 4);
    NUM(o.bytes[0]), NUM(o.bytes[2]), NUM(after);
    END();
    by_value(p, q, s, o, after);

    {
        int n = -round, last = round + 1;
        double d = 1.5;
        float f = -2.25f;

        BEGIN("with_floats");
        NUM(n), NUM(m.n), REAL(m.d), REAL(d), REAL(f), NUM(last);
        END();
        with_floats(n, m, d, f, last);
    }
    {
        int a = -1;
        signed char b = (signed char)(-2 - round);
        unsigned short c = 65533;
        long d = 1l << 62;
        double f1 = 1e10;
        unsigned char e = (unsigned char)(255 - round);
        long f = -6, g = -7 - round;
        short h = (short)(-8 - round);
        float f2 = 0.5f;
        long long i = -9000000000ll * (round + 1);

        BEGIN("ten");
        NUM(a), NUM(b), NUM(c), NUM(d), REAL(f1), NUM(e), NUM(f), NUM(g), NUM(h), REAL(f2), NUM(i);
        AS("$arg4", 1l << 62);
        END();
        ten(a, b, c, d, f1, e, f, g, h, f2, i);
    }
}

static void call_with_pointers(struct node *head, struct record *r, int round) {
    const char *words[3] = {"alpha", "", r->name};
    struct inner rows[2][2] = {{{1, -1}, {2, -2}}, {{3, -3}, {(short)-round, 1 << 30}}};
    char *text = r->name;

    BEGIN("chain");
    NUM(head->value), TEXT(head->label), NUM(head->next->value), TEXT(head->next->label);
    NUM(head->next->next->value), TEXT(head->next->next->label);
    TEXT(words[0]), TEXT(words[1]), TEXT(words[2]), TEXT(text), NUM(text[0]), NUM(*text);
    NUM((*words)[1]);
    NUM(rows[0][1].i), NUM(rows[1][1].s), NUM(rows[1][1].i), NUM((*rows)[1].s);
    END();
    chain(head, words, text, rows);
}

static void call_the_rest(struct record *r, int round) {
    int n = round - 7;

    shared_counter = -40 - round;
    shared_inner.s = (short)(-round - 1);
    shared_inner.i = 1 << (round + 20);
    shared_grid[1][2] = round - 600;
    shared_text = r->name;
    shared_head = r->head;
    per_thread = 5000 + round;
    file_counter += round;
    file_inner.i -= round;
    BEGIN("globals");
    NUM(n), NUM(shared_counter), NUM(shared_inner.s), NUM(shared_inner.i), NUM(shared_grid[1][2]);
    LIST(shared_grid[1], 3), TEXT(shared_text), NUM(shared_head->next->value);
    END();
    globals(n);
    BEGIN("statics_here");
    NUM(n), NUM(file_counter), NUM(file_inner.s), NUM(file_inner.i);
    END();
    statics_here(n);
    report_statics_there(n);
    statics_there(n);
    {
        struct inner *it = &r->in;

        BEGIN("scaled");
        NUM(it->i), NUM(it->s), AS("factor", 3);
        END();
        scaled(it, 3);
    }

    {
        const int triple_of = 3 * n;

        BEGIN("triple");
        NUM(n);
        END();
        triple(n);
        BEGIN("triple%return");
        AS("$retval", triple_of);
        END();
    }
    BEGIN("gone");
    NUM(n);
    END();
    gone(n);
    report_opaque(r->hidden, r);
    look_inside(r->hidden, r);
    call_twin_here(&r->in);
    call_twin_there(round, r->head);
}

int main(void) {
    static char buffer[1 << 16];
    static const char *const colours[] = {"RED", "GREEN", "BLUE"};
    static const char *const sides[] = {"LEFT", "MIDDLE", "RIGHT"};

    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    for (int round = 0; round < 3; round++) {
        struct node third = {-3000 - round, NULL, "third"};
        struct node second = {200 + round, &third, "second"};
        struct node first = {round, &second, "first"};
        struct record *r = make_record(round, &first);
        struct bits b = {(unsigned)round & 1, -16 + round, 131071u - (unsigned)round, -256 + round,
                         0xffffffffffull - (unsigned)round, (signed char)(-4 + round), round != 0,
                         0x7fffffffu - (unsigned)round, -4294967296ll + round,
                         round == 1 ? LEFT : MIDDLE};
        struct packed p = {(char)('p' + round), -70000 * (round + 1), {1, -2, (short)(-3 - round)},
                           5, -2048 + round, 0x3ffffffffffffull - (unsigned)round,
                           -(1ll << 60) - round};

        report_visit(r, round * 10, colours[round], sides[round],
                     round == 1 ? "TINY_NONE" : "TINY_SOME", round == 1 ? "WIDE_ZERO" : "WIDE_HUGE");
        visit(r, round * 10);
        report_flags(&b, &p, round == 1 ? "LEFT" : "MIDDLE");
        flags(&b, &p);
        call_with_values(round);
        call_with_pointers(&first, r, round);
        call_the_rest(r, round);
    }
    return 0;
}
