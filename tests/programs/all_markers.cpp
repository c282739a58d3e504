// A small training with markers of each library: NVTX in its main thread, ROCTx in the thread that loads batches, CLPerfMarker in
// the thread that stores checkpoints, and gputrail's own API where the library is in the process. Kernels run by OpenCL.
#include <CL/cl.h>
#include <chrono>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <thread>
#include <unistd.h>

#include "gputrail.h"

static const int STEPS = 8;

template <class Function> static Function* find(const char* library, const char* name) {
    void* found = dlopen(library, RTLD_NOW);
    return found ? (Function*)dlsym(found, name) : NULL;
}

static void wait_for(int microseconds) { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); }

static nvtxEventAttributes_t attributes(const char* message, uint32_t category, uint32_t color, int64_t payload) {
    nvtxEventAttributes_t event;
    memset(&event, 0, sizeof event);
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.category = category;
    event.colorType = NVTX_COLOR_ARGB;
    event.color = color;
    event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    event.payload.llValue = payload;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = message;
    return event;
}

static void load_batches() {
    auto name = find<int(const char*)>("libroctx64.so.4", "roctxNameOsThread");
    auto push = find<int(const char*)>("libroctx64.so.4", "roctxRangePushA");
    auto pop = find<int(void)>("libroctx64.so.4", "roctxRangePop");
    auto mark = find<void(const char*)>("libroctx64.so.4", "roctxMarkA");
    if (!name || !push || !pop || !mark) return;
    name("loader");
    for (int step = 0; step < STEPS; step++) {
        push("load batch");
        push("read");
        wait_for(1500);
        pop();
        push("decode");
        wait_for(2500);
        pop();
        mark("batch is ready");
        pop();
        wait_for(500);
    }
}

static void store_checkpoints() {
    auto initialize = find<int(void)>("libCLPerfMarker.so", "clInitializePerfMarkerAMD");
    auto begin = find<int(const char*, const char*)>("libCLPerfMarker.so", "clBeginPerfMarkerAMD");
    auto end = find<int(void)>("libCLPerfMarker.so", "clEndPerfMarkerAMD");
    auto finalize = find<int(void)>("libCLPerfMarker.so", "clFinalizePerfMarkerAMD");
    if (!initialize || !begin || !end || !finalize || initialize() != 0) return;
    nvtxNameOsThreadA((uint32_t)gettid(), "checkpoints");
    for (int round = 0; round < 3; round++) {
        begin("checkpoint", "storage");
        begin("compress", NULL);
        wait_for(4000);
        end();
        begin("write", NULL);
        wait_for(3000);
        end();
        end();
        begin("validate", "quality");
        wait_for(2000);
        end();
    }
    finalize();
}

int main() {
    const char* text = "kernel void forward(global float *data) { for (int n = 0; n < 400; n++) data[get_global_id(0)] *= 1.001f; }\n"
                       "kernel void backward(global float *data) { for (int n = 0; n < 800; n++) data[get_global_id(0)] += 0.5f; }\n";
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL)) return 1;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    cl_command_queue queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &status);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    if (clBuildProgram(program, 1, &device, NULL, NULL, NULL)) return 2;
    size_t items = 1 << 11;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, items * sizeof(float), NULL, &status);
    cl_kernel kernels[] = {clCreateKernel(program, "forward", &status), clCreateKernel(program, "backward", &status)};
    for (cl_kernel kernel : kernels) {
        if (clSetKernelArg(kernel, 0, sizeof buffer, &buffer)) return 3;
        // PoCL compiles a kernel when it runs first.
        if (clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) || clFinish(queue)) return 4;
    }

    nvtxDomainHandle_t training = nvtxDomainCreateA("training");
    nvtxDomainNameCategoryA(training, 1, "step");
    nvtxDomainNameCategoryA(training, 2, "phase");
    nvtxCounterAttr_t counter;
    memset(&counter, 0, sizeof counter);
    counter.structSize = sizeof counter;
    counter.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE;
    counter.name = "loss";
    const uint64_t loss = nvtxCounterRegister(training, &counter);
    gputrail_status (*mark)(const gputrail_mark_options*) = NULL;
    if (void* library = dlopen("libgputrail.so.0", RTLD_NOW | RTLD_NOLOAD)) *(void**)&mark = dlsym(library, "gputrail_mark");

    std::thread loader(load_batches), storage(store_checkpoints);
    nvtxRangePushA("epoch 1");
    for (int step = 0; step < STEPS; step++) {
        nvtxEventAttributes_t event = attributes("step", 1, 0xff3080c0, step);
        nvtxDomainRangePushEx(training, &event);
        event = attributes("request", 2, 0xffc08030, step);
        const nvtxRangeId_t request = nvtxDomainRangeStartEx(training, &event);
        for (int phase = 0; phase < 2; phase++) {
            event = attributes(phase ? "backward" : "forward", 2, 0xff30c080, step);
            nvtxDomainRangePushEx(training, &event);
            for (int n = 0; n < 2; n++)
                if (clEnqueueNDRangeKernel(queue, kernels[phase], 1, NULL, &items, NULL, 0, NULL, NULL)) return 5;
            clFinish(queue);
            nvtxDomainRangePop(training);
        }
        nvtxDomainRangeEnd(training, request);
        nvtxCounterSampleFloat64(training, loss, 1.0 / (step + 1));
        gputrail_mark_options done;
        memset(&done, 0, sizeof done);
        done.size = sizeof done;
        done.name = "step done";
        done.domain = "gputrail";
        if (mark) mark(&done);
        nvtxDomainRangePop(training);
    }
    nvtxRangePop();
    loader.join();
    storage.join();
    puts("done");
    return 0;
}
