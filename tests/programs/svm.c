// Shared virtual memory: migrated to the device and back, mapped and unmapped, and first touched by a kernel, one work-item a
// page. Prints the address, which differs from run to run.
#include "report.h"

#define PAGE 4096
#define PAGES 1024

static const char *const SOURCE =
    "kernel void touch(global uchar *x) { size_t i = get_global_id(0); x[i * 4096] = (uchar)(x[i * 4096] + 1); }\n";

int main(void) {
    size_t size = PAGE * PAGES, part = PAGE, items = PAGES;
    cl_int status;
    open_device();
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    cl_program program = clCreateProgramWithSource(context, 1, (const char **)&SOURCE, NULL, &status);
    STATUS(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "touch", &status);
    VALUE(status);
    void *memory = clSVMAlloc(context, CL_MEM_READ_WRITE, size, 0);
    printf("%p\n", memory);
    STATUS(clEnqueueSVMMigrateMem(queue, 1, (const void **)&memory, &part, 0, 0, NULL, NULL));
    STATUS(clSetKernelArgSVMPointer(kernel, 0, memory));
    STATUS(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    STATUS(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, memory, size, 0, NULL, NULL));
    VALUE(*(unsigned char *)memory);
    STATUS(clEnqueueSVMUnmap(queue, memory, 0, NULL, NULL));
    STATUS(clEnqueueSVMMigrateMem(queue, 1, (const void **)&memory, NULL, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL, NULL));
    STATUS(clFinish(queue));
    clSVMFree(context, memory);
    return 0;
}
