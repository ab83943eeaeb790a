/* Event lines: the C expression itself is the text, and its value is what the compiler says. */
#ifndef REPORT_H
#define REPORT_H

#include <stdio.h>

static int fields_so_far;

#define FIELD(...) (printf(fields_so_far++ ? ", " : ""), printf(__VA_ARGS__))
#define BEGIN(function) (fields_so_far = 0, printf("EVENT %s {", function))
#define END() (printf("}\n"), fflush(stdout))

#define NUM(e) FIELD("\"%s\": %lld", #e, (long long)(e))
#define UNUM(e) FIELD("\"%s\": %llu", #e, (unsigned long long)(e))
#define ADDR(e) FIELD("\"%s\": %lu", #e, (unsigned long)(e))
#define REAL(e) FIELD("\"%s\": %.17g", #e, (double)(e))
#define FLAG(e) FIELD("\"%s\": %s", #e, (e) ? "true" : "false")
#define TEXT(e) FIELD("\"%s\": \"%s\"", #e, (e))
#define TEXT_OF(e, size) FIELD("\"%s\": \"%.*s\"", #e, (int)(size), (e))
#define ENUM(e, name) FIELD("\"%s\": {\"name\": \"%s\", \"value\": %lld}", #e, name, (long long)(e))
#define LIST(e, length)                                                          \
    ({                                                                           \
        FIELD("\"%s\": [", #e);                                                  \
        for (int at_ = 0; at_ < (length); at_++)                                 \
            printf("%s%lld", at_ ? ", " : "", (long long)(e)[at_]);              \
        printf("]");                                                             \
    })
/* A name that means something to fetchc and nothing to C: the value is given beside it. */
#define AS(name, value) FIELD("\"%s\": %lld", name, (long long)(value))
#define AS_TEXT(name, value) FIELD("\"%s\": \"%s\"", name, (value))

#endif
