/* Ranges and marks by gputrail.hpp, in a program that opens an OpenCL device and does nothing with it. */
#include <thread>
#include <type_traits>
#include <utility>

#include "gputrail.hpp"
#include "report.h"

static_assert(!std::is_copy_constructible<gputrail::started_range>::value, "ends once");
static_assert(std::is_nothrow_move_constructible<gputrail::started_range>::value, "may be kept in containers");
static_assert(std::is_nothrow_move_assignable<gputrail::started_range>::value, "may be kept in containers");
static_assert(!std::is_move_constructible<gputrail::scoped_range>::value, "stays on its thread");

static int failed;

static void expect(bool is_so, const char *what) {
    if (is_so) return;
    printf("not so: %s\n", what);
    failed = 1;
}

static void step(unsigned number) {
    gputrail::scoped_range range(
        gputrail::attributes("step").domain("training").category("loop").color(0xff3080c0u).payload(number));
    gputrail::scoped_range inner("inner");
    gputrail::mark(gputrail::attributes("loss").payload(0.5));
    gputrail::mark(gputrail::attributes("change").payload(-7L));
    gputrail::mark("plain");
    inner.end();
    inner.end();
}

int main() {
    open_device();
    for (unsigned number = 1; number <= 3; number++) step(number);

    gputrail::started_range upload(gputrail::attributes("upload").payload(4096u)), other("other"), none;
    expect(static_cast<bool>(upload) && !none, "a started range is there, an empty one is not");
    none = std::move(upload);
    expect(!upload && none, "a range moves");
    std::thread thread([](gputrail::started_range range) { expect(static_cast<bool>(range), "moved to a thread"); },
                       std::move(none));
    thread.join();
    expect(!none, "moved away");
    other = gputrail::started_range("replacement"); /* ends the one that was there */
    const std::uint64_t number = other.release();
    expect(!other && gputrail_range_end(number) == GPUTRAIL_OK, "released, and ended by its number");

    gputrail::scoped_range refused("\xff"); /* not UTF-8: nothing begins, and nothing ends */
    gputrail::started_range empty("\xff");
    expect(!empty, "refused");
    refused.end();
    expect(gputrail_range_pop() == GPUTRAIL_STACK_EMPTY, "all ranges have ended");
    puts(failed ? "failed" : "passed");
    return failed;
}
