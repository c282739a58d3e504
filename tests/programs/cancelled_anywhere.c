/* Cancels threads whose cancellation type is asynchronous, in the middle of their calls. */
#include <pthread.h>
#include <unistd.h>

#include "report.h"

static void *call(void *unused) {
    char name[256];
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;) clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL);
    return unused;
}

int main(void) {
    open_device();
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, NULL, call, NULL)) return 99;
        usleep(i * 37 % 500);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED) return 98;
    }
    puts("ended");
    return 0;
}
