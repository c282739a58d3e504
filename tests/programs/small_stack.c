/* Makes calls of OpenCL on a thread with a stack of 32 KiB. */
#include <pthread.h>

#include "report.h"

static void *call(void *unused) {
    cl_device_type type;
    for (int i = 0; i < 10; i++) clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    return unused;
}

int main(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    open_device();
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, 32 << 10) || pthread_create(&thread, &attributes, call, NULL)) return 99;
    pthread_join(thread, NULL);
    puts("ended");
    return 0;
}
