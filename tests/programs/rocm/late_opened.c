/* A program that initialises HIP, of the library that its first argument names, and then opens the library that its second argument
 * names, in which late.c is a function. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    void *hip = count > 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL) : NULL, *opened;
    int (*begin)(unsigned), (*late)(int, char **);
    if (!hip) return printf("no HIP\n"), 1;
    *(void **)&begin = dlsym(hip, "hipInit");
    if (begin(0)) return printf("no hipInit\n"), 1;
    opened = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL);
    if (!opened) return printf("%s\n", dlerror()), 1;
    *(void **)&late = dlsym(opened, "late");
    return late(count - 1, (char *[]){arguments[0], arguments[1], count > 3 ? arguments[3] : NULL, NULL});
}
