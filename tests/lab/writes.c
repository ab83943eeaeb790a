/* Calls of write() with every kind of buffer; the texts begin with "lab:" where they can. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

static char big[3000];

int main(void) {
    char *fresh = mmap(0, 4096 * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int file = open("/lab_writes", O_RDWR | O_CREAT, 0600);
    memset(big, 'q', sizeof big);
    memcpy(big, "lab:", 4);
    memcpy(fresh + 4096 - 8, "lab:edge", 8);
    prctl(PR_SET_NAME, "lab writer");
    write(file, "lab:hello", 9);
    write(file, "lab:a\0b\377", 8);
    write(file, big, sizeof big);
    write(file, fresh + 4096 - 8, 8);
    write(file, fresh + 4096 - 8, 12); /* four bytes of a page that is in no memory yet */
    write(file, fresh + 2 * 4096, 16); /* neither is this one */
    write(file, "lab:", 0);
    write(file, 0, 4);
    write(file, fresh + 2 * 4096, 16); /* the call before brought it in */
    struct iovec parts[] = {{"lab:one", 7}, {"lab:two", 7}};
    writev(file, parts, 2);
    write(-1, "lab:end", 7);
    return 0;
}
