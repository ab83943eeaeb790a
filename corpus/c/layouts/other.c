/* The unit that completes struct opaque, and holds second bearers of two names of main.c. */
#include <stdlib.h>

#include "layouts.h"
#include "report.h"

struct opaque {
    double weight;
    struct inner in;
    struct node *watch;
    char note[12];
};

static long file_counter = -71; /* not the int of main.c */

KEPT static int twin(int wide, struct node *it) {
    USE(it);
    return wide + it->value + (int)file_counter;
}

int call_twin_there(int wide, struct node *it) { return twin(wide, it); }

int statics_there(int n) {
    USE(n);
    return n + (int)file_counter;
}

struct opaque *make_opaque(int round) {
    static struct node watch = {4321, NULL, "watched"};
    struct opaque *o = calloc(1, sizeof *o);

    if (!o) exit(1);
    o->weight = 0.5 - round;
    o->in.s = (short)(round - 4);
    o->in.i = -1000 * round;
    o->watch = &watch;
    snprintf(o->note, sizeof o->note, "note %d", round);
    return o;
}

void report_opaque(struct opaque *o, struct record *r) {
    BEGIN("look_inside");
    REAL(o->weight), NUM(o->in.s), NUM(o->in.i), NUM(o->watch->value), TEXT(o->note);
    NUM(r->hidden->in.i), TEXT(r->hidden->watch->label);
    END();
}

void report_statics_there(int n) {
    file_counter += n;
    BEGIN("statics_there");
    NUM(n), NUM(file_counter);
    END();
}
