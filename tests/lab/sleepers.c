/* Threads that sleep at the same time: so many as the argument says, 40 ms each. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static pthread_barrier_t together;

static void *sleeper(void *nothing) {
    struct timespec span = {0, 40 * 1000 * 1000};
    (void)nothing;
    pthread_barrier_wait(&together);
    nanosleep(&span, NULL);
    return NULL;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t *threads = calloc(count, sizeof *threads);
    pthread_barrier_init(&together, NULL, count);
    for (int each = 0; each < count; each++)
        if (pthread_create(&threads[each], NULL, sleeper, NULL) != 0)
            return 1;
    for (int each = 0; each < count; each++)
        pthread_join(threads[each], NULL);
    return 0;
}
