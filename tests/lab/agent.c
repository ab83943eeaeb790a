/* The first process of a guest: what the lab asks for, it does, and says what came of it.
 *
 * Request and answer are frames on one serial line:  \1 NUMBER LENGTH \n BYTES.  A request's number
 * is its verb, an answer's is 0 or an errno (of `run`: the wait status). Arguments are texts that
 * end in NUL, what is left is contents. Everything outside of frames is the console's.
 *
 * 'p' path mode contents   put a file            'c' path            its contents
 * 'a' path contents        append, in one write  't' path contents   the same, truncating first
 * 'j' file log lines...    judge: of each line errno, NUL, what the log says of it, NUL
 * 'r' program words...     run: what it printed  'q'                 power off
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int line = -1;

static void die(const char *what) {
    fprintf(stderr, "lab agent: %s: %s\n", what, strerror(errno));
    sleep(1);
    reboot(RB_POWER_OFF);
    _exit(1);
}

struct text {
    char *bytes;
    size_t length, room;
};

static void add(struct text *text, const char *bytes, size_t count) {
    if (text->length + count + 1 > text->room) {
        text->room = 2 * (text->length + count) + 4096;
        text->bytes = realloc(text->bytes, text->room);
        if (text->bytes == NULL)
            die("memory");
    }
    memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = 0;
}

/* All of a file behind what the text holds; 0 or an errno. */
static int add_all(struct text *text, int file) {
    char part[16384];
    ssize_t got;
    while ((got = read(file, part, sizeof part)) != 0) {
        if (got > 0)
            add(text, part, got);
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

static int add_file(struct text *text, const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC), problem;
    if (file < 0)
        return errno;
    problem = add_all(text, file);
    close(file);
    return problem;
}

static void send_all(const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = write(line, bytes, count);
        if (sent < 0 && errno != EINTR)
            die("write");
        if (sent > 0)
            bytes += sent, count -= sent;
    }
}

static void answer(int number, const struct text *text) {
    char head[64];
    send_all(head, snprintf(head, sizeof head, "\1 %d %zu\n", number, text ? text->length : 0));
    if (text)
        send_all(text->bytes, text->length);
}

static int next(void) {
    static unsigned char read_ahead[4096];
    static ssize_t at, end;
    while (at == end) {
        at = 0;
        end = read(line, read_ahead, sizeof read_ahead);
        if (end < 0 && errno != EINTR)
            die("read");
        end = end < 0 ? 0 : end;
    }
    return read_ahead[at++];
}

static int store(const char *path, int flags, int mode, const char *bytes, size_t count) {
    int file = open(path, flags | O_WRONLY | O_CLOEXEC, mode), problem = 0;
    if (file < 0)
        return errno;
    do { /* tracefs takes a definition from one write only */
        ssize_t written = write(file, bytes, count);
        if (written < 0 && errno != EINTR)
            problem = errno;
        if (written > 0)
            bytes += written, count -= written;
    } while (count > 0 && !problem);
    if (close(file) < 0 && !problem)
        problem = errno;
    return problem;
}

/* Write each line, and take away at once what came of it. */
static void judge(struct text *to, const char *file, const char *log, char *rest, char *end) {
    while (rest < end) {
        size_t length = strlen(rest);
        char number[16];
        int problem;
        rest[length] = '\n'; /* in place of its NUL */
        store(log, O_TRUNC, 0, "\n", 1);
        problem = store(file, O_APPEND, 0, rest, length + 1);
        add(to, number, snprintf(number, sizeof number, "%d", problem) + 1);
        if (problem)
            add_file(to, log); /* an errno of its own tells as little as an empty log */
        else
            store(file, O_TRUNC, 0, "\n", 1);
        add(to, "", 1);
        rest += length + 1;
    }
}

static int run(struct text *output, char *program, char *rest, char *end) {
    char *words[64] = {program};
    int count = 1, ends[2], status = 0;
    pid_t child;
    for (; rest < end && count < 63; rest += strlen(rest) + 1)
        words[count++] = rest;
    if (pipe2(ends, O_CLOEXEC) < 0 || (child = fork()) < 0)
        die("run");
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        execv(program, words);
        perror(program);
        _exit(127);
    }
    close(ends[1]);
    add_all(output, ends[0]);
    close(ends[0]);
    waitpid(child, &status, 0);
    return status;
}

static void prepare(void) {
    char device[64] = "/dev/ttyS0", *named;
    struct text boot = {0};
    struct termios raw;
    mkdir("/proc", 0755), mkdir("/sys", 0755), mkdir("/dev", 0755), mkdir("/tmp", 0777);
    mount("proc", "/proc", "proc", 0, NULL);
    mount("dev", "/dev", "devtmpfs", 0, NULL);
    mount("sys", "/sys", "sysfs", 0, NULL);
    if (mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL) < 0)
        die("tracefs");
    if (add_file(&boot, "/proc/cmdline") == 0 && (named = strstr(boot.bytes, "lab.line=")))
        sscanf(named + strlen("lab.line="), "%63s", device);
    line = open(device, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (line < 0 || tcgetattr(line, &raw) < 0)
        die(device);
    cfmakeraw(&raw);
    if (tcsetattr(line, TCSANOW, &raw) < 0)
        die(device);
}

int main(void) {
    prepare();
    answer(0, NULL);
    for (;;) {
        int verb, fields = 0;
        size_t length = 0, at = 0;
        char head[64], *first, *second, *rest, *end, *request;
        struct text text = {0};
        while (next() != '\1')
            continue;
        while (at < sizeof head - 1 && (head[at] = next()) != '\n')
            at++;
        head[at] = 0;
        fields = sscanf(head, " %d %zu", &verb, &length);
        request = calloc(length + 4, 1);
        if (fields != 2 || request == NULL)
            die("a request");
        for (at = 0; at < length; at++)
            request[at] = next();
        end = request + length;
        first = request;
        second = first + strlen(first) + 1;
        rest = second + strlen(second) + 1;
        if (verb == 'p')
            answer(store(first, O_CREAT | O_TRUNC, strtol(second, NULL, 8), rest, end - rest), NULL);
        else if (verb == 'a' || verb == 't')
            answer(store(first, verb == 'a' ? O_APPEND : O_TRUNC, 0, second, end - second), NULL);
        else if (verb == 'c')
            at = add_file(&text, first), answer(at, &text);
        else if (verb == 'j')
            judge(&text, first, second, rest, end), answer(0, &text);
        else if (verb == 'r')
            at = run(&text, first, second, end), answer(at, &text);
        else if (verb == 'q')
            answer(0, NULL), tcdrain(line), reboot(RB_POWER_OFF);
        else
            answer(EINVAL, NULL);
        free(text.bytes);
        free(request);
    }
}
