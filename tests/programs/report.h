/* What the transparency programs share: the platform and device they use, and printing of answers in a form that is
 * the same in every run (no addresses, no times). Each program prints all it can learn from OpenCL; the test compares
 * what it prints alone with what it prints while being recorded. */
#ifndef REPORT_H
#define REPORT_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* Prints an expression and the status it returns. */
#define STATUS(call) printf("%-90s %d\n", squeeze(#call), (int)(call))
/* Prints an expression and its integer value. */
#define VALUE(expression) printf("%-90s %lld\n", squeeze(#expression), (long long)(expression))

/* An event variable that a failed call must leave as it is. */
#define UNTOUCHED ((cl_event)(size_t)0x5eed5eed)

static inline const char *squeeze(const char *text) { return strlen(text) > 90 ? text + strlen(text) - 90 : text; }

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;

static void open_device(void) {
    cl_int status = clGetPlatformIDs(1, &platform, NULL);
    if (status == CL_SUCCESS) status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    if (status == CL_SUCCESS) context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    if (status != CL_SUCCESS) {
        fprintf(stderr, "no OpenCL device: %d\n", status);
        exit(1);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
}

#endif
