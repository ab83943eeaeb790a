// Event lines: the C++ expression itself is the text, and its value is what the compiler says.
#pragma once

#include <cstdio>
#include <string>

inline int fields_so_far;

#define FIELD(...) (std::printf(fields_so_far++ ? ", " : ""), std::printf(__VA_ARGS__))
#define BEGIN(function) (fields_so_far = 0, std::printf("EVENT %s {", function))
#define END() (std::printf("}\n"), std::fflush(stdout))

#define NUM(e) FIELD("\"%s\": %lld", #e, (long long)(e))
#define TEXT(e) FIELD("\"%s\": \"%s\"", #e, std::string(e).c_str())
#define FLAG(e) FIELD("\"%s\": %s", #e, (e) ? "true" : "false")
// What fetchc writes otherwise than C++ does: the value is given beside it.
#define AS(name, value) FIELD("\"%s\": %lld", name, (long long)(value))
#define AS_TEXT(name, value) FIELD("\"%s\": \"%s\"", name, std::string(value).c_str())
#define AS_LIST(name, a, b, c)                                                                    \
    FIELD("\"%s\": [%lld, %lld, %lld]", name, (long long)(a), (long long)(b), (long long)(c))
