/* Probes without semaphores: a variable of the file, constants, a text, a number on the stack. */
#include <stdio.h>
#include <sys/sdt.h>

#include "service.h"

static int lines = 40;

void __attribute__((noinline)) written(struct request *r, long bytes) {
    volatile long twice = 2 * bytes;
    lines += 2;
    DTRACE_PROBE5(fetchc_service, written, r->path, lines, -77, bytes, twice);
    printf("EVENT written %s %d %d %ld %ld\n", r->path, lines, -77, bytes, twice);
}
