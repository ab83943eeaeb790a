/* Static probes of a program: what each hands over is printed when it is passed.
 *
 * `request` has a semaphore, by which the program knows that somebody looks; it is in two places.
 * The probes of journal.c have none. A line is: EVENT NAME and the values.
 */
#include <stdio.h>

#include "service.h"

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

unsigned short fetchc_service_request_semaphore __attribute__((section(".probes")));

static void __attribute__((noinline)) handle(struct request *r, short priority, unsigned char flags) {
    if (fetchc_service_request_semaphore) {
        DTRACE_PROBE4(fetchc_service, request, r, priority, flags, r->id);
        printf("EVENT request %ld %s %d %d\n", r->id, r->path, priority, flags);
    }
    written(r, priority * 1000L);
}

static void __attribute__((noinline)) retry(struct request *r) {
    if (fetchc_service_request_semaphore) {
        DTRACE_PROBE4(fetchc_service, request, r->next, (short)-1, (unsigned char)255, r->next->id);
        printf("EVENT request %ld %s %d %d\n", r->next->id, r->next->path, -1, 255);
    }
}

int main(void) {
    struct request second = {-2000000000000, "/second", NULL};
    struct request first = {1, "/first", &second};
    for (int round = 0; round < 3; round++) {
        handle(&first, -5 - round, 200 + round);
        handle(&second, 7, 9);
        retry(&first);
    }
    return 0;
}
