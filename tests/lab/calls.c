/* System calls of a known kind, and a line about each: what was passed in, what came back.
 *
 * open PATH FLAGS MODE RESULT, then for each file read or written:
 * read|write NAME COUNT FLAGS INODE MODE RESULT. Numbers are decimal; all names begin with "lab_".
 * With an argument, a number of seconds, nothing is printed: the process stays that long instead, for
 * whoever reads its files in /proc.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static char said[8192]; /* printed at the end: printing is a write, too */
static size_t length;

#define SAY(...) (length += snprintf(said + length, sizeof said - length, __VA_ARGS__))

static void describe(const char *call, const char *name, int file, size_t count, ssize_t result) {
    struct stat about;
    fstat(file, &about);
    SAY("%s %s %zu %d %lu %u %zd\n", call, name, count, fcntl(file, F_GETFL),
        (unsigned long)about.st_ino, about.st_mode, result);
}

int main(int argc, char **argv) {
    static const char *names[] = {"lab_a", "lab_notes.txt", "lab_a_name_of_more_than_forty_bytes_that_is_not_inline"};
    static char bytes[5000];
    mkdir("/notes", 0700);
    prctl(PR_SET_NAME, "lab caller");
    for (int each = 0; each < 3; each++) {
        char path[128];
        int flags = O_RDWR | O_CREAT | (each == 1 ? O_APPEND : 0), mode = 0600 + each;
        snprintf(path, sizeof path, "/notes/%s", names[each]);
        int file = open(path, flags, mode);
        SAY("open %s %d %d %d\n", path, flags, mode, file);
        size_t count = 1 + 1700 * each;
        describe("write", names[each], file, count, write(file, bytes, count));
        lseek(file, 0, SEEK_SET);
        describe("read", names[each], file, 4097, read(file, bytes, 4097));
        describe("read", names[each], file, 100 + each, read(file, bytes, 100 + each));
        close(file);
        unlink(path);
    }
    SAY("open /none/lab_missing %d 0 %d\n", O_RDONLY, open("/none/lab_missing", O_RDONLY) < 0 ? -2 : 0);
    SAY("process %d\n", getpid());
    if (argc > 1)
        return sleep(atoi(argv[1])) != 0;
    return write(1, said, length) == (ssize_t)length ? 0 : 1;
}
