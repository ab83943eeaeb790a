/* A server that is slow for one kind of request: docs/slow-server.md finds which, and why. */
#include <stddef.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define KEEP __asm__ volatile("" ::: "memory")

struct request {
    const char *path;
    int user;
    size_t length;
};

static const char *paths[] = { "/index", "/login", "/index", "/report", "/index", "/login" };

NOINLINE int find_user(int user) { usleep(20); return user * 7; }

/* The best compression of long pages takes its time. */
NOINLINE size_t compress_page(size_t length, int level)
{
    usleep(level == 9 ? 8000 : 50);
    return length / level;
}

NOINLINE size_t render_page(const struct request *r, int token)
{
    int level = r->length > 50000 ? 9 : 3;
    size_t length = compress_page(r->length, level);
    KEEP;
    return length + token % 2;
}

NOINLINE size_t handle_request(const struct request *r)
{
    size_t length = render_page(r, find_user(r->user));
    KEEP;
    return length;
}

int main(void)
{
    size_t sent = 0;
    for (int n = 0; n < 300; n++) {
        const char *path = paths[n % 6];
        struct request r = { path, n % 10, path[1] == 'r' ? 60000 + 1000 * (n % 4) : 900 };
        sent += handle_request(&r);
    }
    return sent == 0;
}
