// Opens a path that is in a page of a file which this process has not touched.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    const char *path = "/none/lab_in_a_cold_page";
    int file = open("/cold_file", O_RDWR | O_CREAT, 0600);
    if (write(file, path, strlen(path) + 1) < 0)
        return 1;
    prctl(PR_SET_NAME, "lab renamed");
    char *page = mmap(0, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    syscall(SYS_openat, AT_FDCWD, page, O_RDONLY | O_NOFOLLOW, 0);
    printf("process %d\n", getpid());
    return 0;
}
