/* What gputrail.hpp has for tools, in a program that observes the simulated GPU: contexts, buffers, subscribers, errors. */
#include "gputrail.hpp"
#include "checks.h"
#include <atomic>
#include <memory>
#include <stdexcept>
#include <utility>

static_assert(gputrail::kind_of<gputrail_record_api>::value == GPUTRAIL_KIND_API, "the kind of a record");
static_assert(!std::is_copy_constructible<gputrail::buffer>::value, "a buffer is not copied");
static_assert(std::is_nothrow_move_constructible<gputrail::buffer>::value, "a buffer moves");
static_assert(std::is_nothrow_move_assignable<gputrail::subscriber>::value, "a subscriber moves");

static gputrail_simulation_report simulate() {
    gputrail_simulation_options options = GPUTRAIL_SIMULATION_OPTIONS_INIT;
    gputrail_simulation_report report = GPUTRAIL_SIMULATION_REPORT_INIT;
    options.steps = 1;
    gputrail::check(gputrail_simulation_run(&options, &report));
    return report;
}

/* The status of the error that a function throws; GPUTRAIL_OK if it throws none. */
template <typename Function> static gputrail_status status_of(Function function) {
    try {
        function();
    } catch (const gputrail::error &error) {
        CHECK(std::string(error.what()).find(gputrail_status_name(error.status())) == 0);
        CHECK(std::string(error.what()).size() > 20);
        return error.status();
    }
    return GPUTRAIL_OK;
}

/* What the function throws that is no error of the library. */
template <typename Function> static std::string thrown_by(Function function) {
    try {
        function();
    } catch (const gputrail::error &) {
        return "an error of the library";
    } catch (const std::exception &exception) {
        return exception.what();
    }
    return "nothing";
}

static void records_and_callbacks() {
    std::uint64_t kernels = 0, calls = 0, named = 0, timed = 0, external = 0;
    gputrail::buffer buffer([&](const gputrail::batch &batch) {
        for (const gputrail_record_header &record : batch) {
            if (const auto *kernel = gputrail::record_cast<gputrail_record_kernel_dispatch>(record)) {
                kernels++;
                named += !gputrail::kernel_name(kernel->kernel).empty();
                timed += gputrail::times_of(record).end > 0;
                CHECK(gputrail::record_cast<gputrail_record_api>(record) == nullptr);
            } else if (const auto *call = gputrail::record_cast<gputrail_record_api>(record)) {
                calls++;
                external += call->external == 42;
                CHECK(gputrail_operation_code(call->operation) == GPUTRAIL_SIM_simLaunchKernel);
                CHECK(gputrail::operation_name(call->operation) == "simLaunchKernel");
                CHECK(gputrail::times_of(record).end == 0);
            }
        }
    });
    gputrail::context context;
    context.trace_to(buffer, {GPUTRAIL_KIND_API, GPUTRAIL_KIND_KERNEL_DISPATCH}, {GPUTRAIL_SIM_simLaunchKernel});
    std::atomic<unsigned> agents{0}, launches{0}, others{0};
    gputrail::subscriber subscriber = context.subscribe(
        {GPUTRAIL_RESOURCE_AGENT_KNOWN, GPUTRAIL_SIM_simLaunchKernel}, [&](gputrail_callback &callback) {
            switch (gputrail_operation_code(callback.operation)) {
            case GPUTRAIL_RESOURCE_AGENT_KNOWN: {
                const auto *agent = gputrail::record_cast<gputrail_record_agent>(callback.record);
                CHECK(agent != nullptr && !gputrail::agent_name(agent->id).empty());
                agents++;
                break;
            }
            case GPUTRAIL_SIM_simLaunchKernel: launches++; break;
            default: others++;
            }
        });
    CHECK(!context.is_active());
    context.start();
    CHECK(context.is_active());
    gputrail_simulation_report report;
    {
        const gputrail::scoped_external_id id(GPUTRAIL_EXTERNAL_KIND_CUSTOM0, 42);
        const gputrail::scoped_external_id inner(context, GPUTRAIL_EXTERNAL_KIND_CUSTOM1, 42);
        report = simulate();
    }
    CHECK(gputrail_external_current() == 0);
    CHECK(agents == report.devices && launches > 0 && others == 0);
    CHECK(kernels < report.kernels);
    buffer.flush();
    context.stop();
    CHECK(status_of([&] { context.stop(); }) == GPUTRAIL_STOPPED);
    buffer.destroy();
    CHECK(!buffer);
    buffer.destroy();
    CHECK(kernels == report.kernels && named == kernels && timed == kernels);
    CHECK(calls * 2 == launches && external == calls);
    // The subscriber goes with its context, and nothing is called any longer.
    context.destroy();
    simulate();
    CHECK(calls * 2 == launches);
}

static void objects_move() {
    unsigned batches = 0;
    std::unique_ptr<gputrail::buffer> first(new gputrail::buffer([&](const gputrail::batch &) { batches++; }));
    const gputrail_buffer handle = first->get();
    gputrail::buffer moved(std::move(*first));
    CHECK(!*first && moved.get().handle == handle.handle);
    first.reset();
    gputrail::buffer other([](const gputrail::batch &) {});
    const gputrail_buffer replaced = other.get();
    other = std::move(moved);
    CHECK(gputrail_buffer_flush(replaced) == GPUTRAIL_NO_SUCH_BUFFER);
    gputrail::context context;
    context.trace_to(other);
    context.start();
    simulate();
    context.stop();
    other.flush();
    CHECK(batches > 0);
}

static void errors_are_thrown() {
    gputrail_buffer_options options = GPUTRAIL_BUFFER_OPTIONS_INIT;
    options.policy = 77;
    CHECK(status_of([&] { gputrail::buffer([](const gputrail::batch &) {}, options); }) == GPUTRAIL_INVALID_ARGUMENT);
    gputrail::context context;
    context.start();
    CHECK(status_of([&] { context.start(); }) == GPUTRAIL_STARTED);
    gputrail::buffer buffer([](const gputrail::batch &) {});
    CHECK(status_of([&] { context.trace_to(buffer); }) == GPUTRAIL_LOCKED);
    CHECK(status_of([&] { gputrail::scoped_external_id(0, 1); }) == GPUTRAIL_INVALID_ARGUMENT);
    gputrail::context gone(std::move(context));
    CHECK(status_of([&] { context.start(); }) == GPUTRAIL_NO_SUCH_CONTEXT);
}

static void exceptions_of_callbacks_are_kept() {
    gputrail::buffer buffer([](const gputrail::batch &) { throw std::runtime_error("from deliver"); });
    gputrail::context context;
    context.trace_to(buffer, {GPUTRAIL_KIND_KERNEL_DISPATCH});
    gputrail::subscriber thrower =
        context.subscribe({GPUTRAIL_RESOURCE_CONTEXT_CREATED}, [](gputrail_callback &) { throw std::logic_error("from a call"); });
    context.start();
    simulate();
    context.stop();
    CHECK(thrown_by([&] { buffer.flush(); }) == "from deliver");
    CHECK(thrown_by([&] { buffer.flush(); }) == "nothing");
    CHECK(thrown_by([&] { thrower.destroy(); }) == "from a call");
    // The destructor of this one prints what nobody took.
    context.start();
    simulate();
    context.stop();
}

static void subscribers_end_with_their_context() {
    gputrail::context context;
    gputrail::subscriber thrower =
        context.subscribe({GPUTRAIL_RESOURCE_CONTEXT_CREATED}, [](gputrail_callback &) { throw std::logic_error("from a call"); });
    gputrail::subscriber silent = context.subscribe({GPUTRAIL_RESOURCE_CONTEXT_CREATED}, [](gputrail_callback &) {});
    context.start();
    simulate();
    CHECK(thrower && silent);
    context.destroy();
    CHECK(!thrower && !silent);
    CHECK(thrown_by([&] { thrower.destroy(); }) == "from a call");
    CHECK(thrown_by([&] { silent.destroy(); }) == "nothing");
}

static void callbacks_destroy() {
    gputrail::context context;
    std::unique_ptr<gputrail::buffer> buffer;
    gputrail_status within = GPUTRAIL_OK;
    buffer.reset(new gputrail::buffer([&](const gputrail::batch &) { within = status_of([&] { buffer->destroy(); }); }));
    context.trace_to(*buffer, {GPUTRAIL_KIND_KERNEL_DISPATCH});
    std::atomic<unsigned> called{0};
    std::unique_ptr<gputrail::subscriber> once;
    once.reset(new gputrail::subscriber(context.subscribe({GPUTRAIL_RESOURCE_AGENT_KNOWN}, [&](gputrail_callback &) {
        called++;
        once.reset();
    })));
    gputrail::subscriber off = context.subscribe({GPUTRAIL_RESOURCE_CONTEXT_CREATED}, [&](gputrail_callback &) { called += 100; });
    off.enable(GPUTRAIL_RESOURCE_CONTEXT_CREATED, false);
    context.start();
    simulate();
    context.stop();
    buffer->flush();
    CHECK(within == GPUTRAIL_BUSY);
    CHECK(*buffer && called == 1);
}

int main() {
    CHECK(status_of([] { gputrail::context context; }) == GPUTRAIL_NOT_INITIALISED);
    {
        const gputrail::library library;
        records_and_callbacks();
        objects_move();
        errors_are_thrown();
        exceptions_of_callbacks_are_kept();
        subscribers_end_with_their_context();
        callbacks_destroy();
    }
    CHECK(!gputrail_is_initialised());
    if (failures == 0) std::puts("passed");
    return failures != 0;
}
