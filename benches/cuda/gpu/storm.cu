// A million launches of an empty kernel by four threads, each into a stream of its own. Prints the wall time.
#include <cuda_runtime.h>
#include <cstdio>
#include <thread>
#include <vector>
#include <chrono>
__global__ void empty() {}
int main() {
    std::vector<std::thread> all;
    cudaFree(0);
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 4; i++)
        all.emplace_back([] {
            cudaStream_t stream;
            cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
            for (int k = 0; k < 250000; k++) empty<<<1, 32, 0, stream>>>();
            cudaStreamSynchronize(stream);
        });
    for (auto &one : all) one.join();
    printf("%.3f s, %d\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), cudaGetLastError());
}
