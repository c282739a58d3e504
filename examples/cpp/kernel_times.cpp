/* How long each kernel ran, and how long it waited between its enqueue and its start: a line per kernel when the program ends.
 *
 *   c++ -std=c++11 -Wall -Wextra -pedantic -shared -fPIC -o libkernel_times.so kernel_times.cpp $(pkg-config --cflags --libs gputrail)
 *   gputrail record --tool ./libkernel_times.so -- PROGRAM
 */
#include "gputrail.hpp"
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

class kernel_times {
    struct sums {
        std::uint64_t runs = 0, nanos = 0, waited = 0, unfinished = 0;
    };

    // What callbacks use comes first, since members are destroyed in the reverse order. No lock: the batches of a buffer come
    // one after the other.
    std::map<std::string, sums> kernels_;
    std::map<gputrail_kernel_id, sums *> of_id_;
    gputrail::buffer buffer_{[this](const gputrail::batch &batch) { add(batch); }};
    gputrail::context context_;

    void add(const gputrail::batch &batch) {
        for (const gputrail_record_header &record : batch) {
            const auto *kernel = gputrail::record_cast<gputrail_record_kernel_dispatch>(record);
            if (kernel == nullptr) continue;
            sums *&of = of_id_[kernel->kernel];
            if (of == nullptr) of = &kernels_[gputrail::kernel_name(kernel->kernel)];
            const gputrail_work_times times = gputrail::times_of(record);
            if (times.start == 0 || times.end < times.start) {
                of->unfinished++;
                continue;
            }
            of->runs++;
            of->nanos += times.end - times.start;
            of->waited += times.start > times.enqueued ? times.start - times.enqueued : 0;
        }
    }

  public:
    kernel_times() {
        context_.trace_to(buffer_, {GPUTRAIL_KIND_KERNEL_DISPATCH});
        context_.start();
    }

    ~kernel_times() {
        const std::uint64_t dropped = buffer_.dropped();
        // Kernels that have not completed come now, without times.
        context_.destroy();
        buffer_.destroy();
        for (const auto &kernel : kernels_) {
            const sums &of = kernel.second;
            const double runs = of.runs > 0 ? static_cast<double>(of.runs) : 1;
            std::fprintf(stderr, "%s: %llu runs, %.3f ms, %.3f us each, after %.3f us", kernel.first.c_str(),
                         static_cast<unsigned long long>(of.runs), static_cast<double>(of.nanos) / 1e6,
                         static_cast<double>(of.nanos) / 1e3 / runs, static_cast<double>(of.waited) / 1e3 / runs);
            if (of.unfinished > 0) std::fprintf(stderr, ", %llu without times", static_cast<unsigned long long>(of.unfinished));
            std::fputc('\n', stderr);
        }
        if (dropped > 0) std::fprintf(stderr, "%llu records were dropped\n", static_cast<unsigned long long>(dropped));
    }
};

GPUTRAIL_TOOL("kernel-times", kernel_times)
