/* What an exported function returns, and the mark that exports it from the library. */
#ifndef LG_STATUS_H
#define LG_STATUS_H

enum {
    LG_OK = 0,
    LG_NO_MEMORY = 1,    /* scratch memory refused */
    LG_BAD_ARGUMENT = 2, /* sizes or types that do not belong together */
    LG_NUMERIC = 3       /* a NaN where a choice must be made */
};

#if defined(_WIN32)
#define LG_EXPORT __declspec(dllexport)
#else
#define LG_EXPORT __attribute__((visibility("default")))
#endif

#endif
