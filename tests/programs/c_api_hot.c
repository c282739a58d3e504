/* A program that is linked with gputrail and makes many cheap calls, which are recorded, with an external id, and told to a
   subscriber at enter and exit. A test counts the system calls of its thread.

   usage: c_api_hot CALLS */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include "gputrail.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const source = "kernel void k(int a) {}";
static unsigned long told, records;

static void called_back(gputrail_callback *callback, void *user_data) {
    (void)user_data;
    told += callback->runtime_context != 0;
}

static void deliver(const gputrail_batch *batch, void *user_data) {
    const gputrail_record_header *record = NULL;
    (void)user_data;
    while (gputrail_batch_next(batch, &record) == GPUTRAIL_OK && record != NULL) records += record->kind == GPUTRAIL_KIND_API;
}

static int begin(void) {
    gputrail_buffer_options options;
    gputrail_operation set_argument;
    gputrail_subscriber subscriber;
    gputrail_context context;
    gputrail_buffer buffer;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    return gputrail_initialise() == GPUTRAIL_OK && gputrail_observe_opencl() == GPUTRAIL_OK &&
           gputrail_operation_by_name(GPUTRAIL_DOMAIN_OPENCL, "clSetKernelArg", &set_argument) == GPUTRAIL_OK &&
           gputrail_context_create(&context) == GPUTRAIL_OK && gputrail_buffer_create(&options, deliver, NULL, &buffer) == GPUTRAIL_OK &&
           gputrail_context_trace_to(context, buffer, NULL) == GPUTRAIL_OK &&
           gputrail_subscribe(context, &set_argument, 1, called_back, NULL, &subscriber) == GPUTRAIL_OK &&
           gputrail_context_start(context) == GPUTRAIL_OK;
}

int main(int count, char **words) {
    const unsigned long calls = count > 1 ? strtoul(words[1], NULL, 10) : 0;
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_program program;
    cl_kernel kernel;
    cl_int status = CL_SUCCESS;
    unsigned long call;
    if (!begin() || clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS)
        return 1;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    program = clCreateProgramWithSource(context, 1, (const char **)&source, NULL, &status);
    status |= clBuildProgram(program, 1, &device, "", NULL, NULL);
    kernel = clCreateKernel(program, "k", &status);
    if (gputrail_external_push(GPUTRAIL_EXTERNAL_KIND_CUSTOM0, 7) != GPUTRAIL_OK) return 1;
    for (call = 0; call < calls; call++) status |= clSetKernelArg(kernel, 0, sizeof(int), &call);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseContext(context);
    if (status != CL_SUCCESS || gputrail_finalise() != GPUTRAIL_OK) return 1;
    printf("%lu callbacks with a context, %s\n", told, records >= calls ? "all recorded" : "records are missing");
    return 0;
}
