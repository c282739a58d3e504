// Names objects by NVTX: the calling thread, and those of CUDA or of OpenCL.
//
//     nvtx_names cuda      a device, a context, a stream and an event of the driver and of the runtime
//     nvtx_names opencl    the first device, a context, a queue, a memory object, a program and an event
#include <CL/cl.h>
#include <cuda.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <nvtx3/nvToolsExtOpenCL.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int cuda() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) return puts(dlerror()), 1;
    if (((int (*)(unsigned))dlsym(library, "cuInit"))(0)) return 2;
    auto launch = (int (*)(const char*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**,
                           void**))dlsym(library, "cuLaunchKernel");
    auto create = (int (*)(CUstream*, unsigned))dlsym(library, "cuStreamCreate");
    CUcontext context = nullptr;
    if (((int (*)(CUcontext*, unsigned, int))dlsym(library, "cuCtxCreate_v2"))(&context, 0, 0)) return 9;
    CUstream streams[3] = {};
    for (auto& stream : streams)
        if (create(&stream, 0)) return 10;
    // Work before the name, and after it.
    if (launch("early", 1, 1, 1, 32, 1, 1, 0, streams[0], nullptr, nullptr)) return 6;
    if (((int (*)(CUstream))dlsym(library, "cuStreamSynchronize"))(streams[0])) return 7;
    nvtxNameCuDeviceA(0, "training device");
    nvtxNameCuContextA(context, "training context");
    nvtxNameCuStreamA(streams[0], "copy stream");
    nvtxNameCuEventA((CUevent)0x30, "copied");
    nvtxNameCudaStreamW((cudaStream_t)streams[1], L"compute stream");
    nvtxNameCudaEventA((cudaEvent_t)0x50, "computed");
    // Handles of nothing.
    nvtxNameCuContextA((CUcontext)0x11, "no context");
    nvtxNameCuStreamA((CUstream)0x21, "no stream");
    for (auto stream : streams)
        if (launch("late", 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr)) return 8;
    return 0;
}

static int opencl() {
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    cl_event event;
    char data[64] = {0};
    if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL)) return 3;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    cl_command_queue queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &status);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof data, NULL, &status);
    nvtxNameClDeviceA(device, "training device");
    nvtxNameClContextA(context, "training context");
    nvtxNameClCommandQueueW(queue, L"copy queue");
    nvtxNameClMemObjectA(buffer, "weights");
    if (clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof data, data, 0, NULL, &event)) return 4;
    nvtxNameClEventA(event, "copied");
    clReleaseEvent(event);
    clReleaseMemObject(buffer);
    clReleaseCommandQueue(queue);
    return clReleaseContext(context);
}

int main(int count, char** arguments) {
    if (count < 2) return 9;
    nvtxResourceAttributes_t thread;
    memset(&thread, 0, sizeof thread);
    thread.version = NVTX_VERSION;
    thread.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
    thread.identifierType = NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE;
    thread.identifier.ullValue = (uint64_t)syscall(SYS_gettid);
    thread.messageType = NVTX_MESSAGE_TYPE_ASCII;
    thread.message.ascii = "trainer";
    nvtxDomainResourceCreate(NULL, &thread);
    return strcmp(arguments[1], "cuda") ? opencl() : cuda();
}
