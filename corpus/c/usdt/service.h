struct request {
    long id;
    const char *path;
    struct request *next;
};

void written(struct request *r, long bytes);
