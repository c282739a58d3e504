/* Enqueues from functions that are known, for call stacks: from main, deep down, from a thread with a small stack, from a stack
 * of the program's own making, from code that lies in no file, and with a frame pointer that leads nowhere. */
#define _GNU_SOURCE
#include "report.h"
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static cl_command_queue queue;
static cl_mem memory;

__attribute__((noinline)) void fill(int value) {
    STATUS(clEnqueueFillBuffer(queue, memory, &value, sizeof value, 0, 64, 0, NULL, NULL));
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void inner_step(int value) {
    fill(value);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void outer_step(int value) {
    inner_step(value);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void descend(int depth) {
    if (depth) descend(depth - 1);
    else fill(2);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void *on_thread(void *value) {
    fill((int)(size_t)value);
    return NULL;
}

static ucontext_t before, fiber;

__attribute__((noinline)) void on_fiber(void) {
    fill(4);
    __asm__ volatile("" ::: "memory");
}

static void run_thread(size_t bytes, int value) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (bytes) pthread_attr_setstacksize(&attributes, bytes);
    VALUE(pthread_create(&thread, &attributes, on_thread, (void *)(size_t)value));
    pthread_join(thread, NULL);
}

/* Code without a name, a frame pointer or unwind information, as Python's trampolines are: it calls `function`. */
static void run_trampoline(void (*function)(int), int value) {
#ifdef __x86_64__
    static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, /* sub $8, %rsp */
                                         0xff, 0xd6,             /* call *%rsi */
                                         0x48, 0x83, 0xc4, 0x08, /* add $8, %rsp */
                                         0xc3};
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char name[64];
    memcpy(page + 1024, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(name, "w");
    if (map) {
        fprintf(map, "%lx %zx generated code\n", (unsigned long)(page + 1024), sizeof code);
        fclose(map);
    }
    ((void (*)(int, void (*)(int)))(page + 1024))(value, function);
#else
    function(value);
#endif
}

/* Calls `fill` from code without unwind information whose frame pointer is `pointer`. */
#ifdef __x86_64__
static void run_broken(unsigned long pointer) {
    static const unsigned char code[] = {0x55,             /* push %rbp */
                                         0x48, 0x89, 0xf5, /* mov %rsi, %rbp */
                                         0xff, 0xd2,       /* call *%rdx */
                                         0x90,             /* nop */
                                         0x5d, 0xc3};      /* pop %rbp; ret */
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page + 1024, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    ((void (*)(int, unsigned long, void (*)(int)))(page + 1024))(6, pointer, fill);
}
#else
static void run_broken(unsigned long pointer) {
    (void)pointer;
    fill(6);
}
#endif

int main(int count, char **arguments) {
    cl_int status;
    open_device();
    queue = clCreateCommandQueue(context, device, 0, &status);
    memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &status);
    int calls = count > 1 ? atoi(arguments[1]) : 1;
    for (int i = 0; i < calls; i++) outer_step(1);
    descend(300);
    run_thread(0, 3);
    run_thread(32768, 3);
    static char stack[1 << 18];
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_stack.ss_size = sizeof stack;
    fiber.uc_link = &before;
    makecontext(&fiber, on_fiber, 0);
    swapcontext(&before, &fiber);
    run_trampoline(fill, 5);
    unsigned long here = (unsigned long)&here;
    unsigned long pointers[] = {0, 1, 8, here & ~7ul, (here & ~7ul) + 3, ~0ul, 0x7fffffffffff, 0x800000000000,
                                (unsigned long)main, (unsigned long)stack};
    for (size_t i = 0; i < LENGTH(pointers); i++) run_broken(pointers[i]);
    STATUS(clFinish(queue));
    clReleaseMemObject(memory);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return 0;
}
