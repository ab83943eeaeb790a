/* Threads that sleep at the same time: so many as the argument says, until all of them do. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void woken(int number) { (void)number; }

static void *sleeper(void *task) {
    struct timespec span = {1000, 0};
    *(volatile int *)task = syscall(SYS_gettid);
    nanosleep(&span, NULL);
    return NULL;
}

/* Whether a thread waits in the call of the kernel that it sleeps by. */
static int sleeps(volatile int *task) {
    char path[64];
    int call = -1;
    FILE *file;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", *task);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%d", &call) != 1) /* "running" */
        call = -1;
    fclose(file);
    return call == SYS_nanosleep || call == SYS_clock_nanosleep;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t *threads = calloc(count, sizeof *threads);
    int *tasks = calloc(count, sizeof *tasks);
    struct sigaction act = {.sa_handler = woken};
    sigaction(SIGUSR1, &act, NULL);
    for (int each = 0; each < count; each++)
        if (pthread_create(&threads[each], NULL, sleeper, &tasks[each]) != 0)
            return 1;
    for (int each = 0; each < count; each++)
        while (!sleeps(&tasks[each]))
            sched_yield();
    for (int each = 0; each < count; each++)
        pthread_kill(threads[each], SIGUSR1);
    for (int each = 0; each < count; each++)
        pthread_join(threads[each], NULL);
    return 0;
}
