/*
 * gputrail.hpp: gputrail.h for C++11 and later: markers, and what tools are made of.
 *
 * Markers are ranges that end with their scope:
 *
 *     void step(std::uint64_t number) {
 *         gputrail::scoped_range step(gputrail::attributes("step").domain("training").payload(number));
 *         gputrail::mark("batch loaded");
 *         gputrail::started_range upload("upload");
 *         std::thread([](gputrail::started_range range) { ... }, std::move(upload)).detach();
 *     }   // the step ends here, the upload with its thread
 *
 * A scoped_range is on its thread, within those that are open there. A started_range may overlap others, move, and end on
 * any thread. Both end once, when they are destroyed at the latest. Markers throw nothing. While nobody records, a range costs
 * little and leaves no trace. A range that the library refuses (a text that is not UTF-8) is empty, and its end does nothing.
 *
 * A tool is a class. Its object is made before the program's first call, and destroyed when the program ends:
 *
 *     class counter {
 *         std::uint64_t kernels = 0;
 *         gputrail::buffer buffer{[this](const gputrail::batch &batch) {
 *             for (const gputrail_record_header &record : batch)
 *                 if (gputrail::record_cast<gputrail_record_kernel_dispatch>(record)) kernels++;
 *         }};
 *         gputrail::context context;
 *
 *       public:
 *         counter() {
 *             context.trace_to(buffer, {GPUTRAIL_KIND_KERNEL_DISPATCH});
 *             context.start();
 *         }
 *         ~counter() {
 *             context.stop();
 *             buffer.destroy();   // delivers what is left
 *             std::fprintf(stderr, "%llu kernels\n", (unsigned long long)kernels);
 *         }
 *     };
 *     GPUTRAIL_TOOL("counter", counter)
 *
 * Members are destroyed in the reverse order: declare first what callbacks use, then buffers, contexts, and subscribers.
 * Functions that fail throw gputrail::error. What is missing here takes gputrail.h, and the handles that get() returns.
 *
 * An exception that a callback lets out goes no further: the first one of a buffer or subscriber is kept, and is thrown
 * by its next flush() or destroy(); a destructor prints it.
 *
 * Without exceptions (-fno-exceptions) there are markers, records and names only.
 */
#ifndef GPUTRAIL_HPP
#define GPUTRAIL_HPP

#include "gputrail.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define GPUTRAIL_HPP_TOOLS
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <vector>
#endif

namespace gputrail {

/* The attributes of a mark or range. Texts must last until the mark is made or the range begins; the library keeps copies. */
class attributes {
  public:
    /* With a name only. A null name is refused by the library. */
    attributes(const char *name) noexcept {
        options_.name = name;
    }

    /* The library or component that it belongs to. */
    attributes &domain(const char *domain) noexcept {
        options_.domain = domain;
        return *this;
    }

    attributes &category(const char *category) noexcept {
        options_.category = category;
        return *this;
    }

    /* Alpha, red, green and blue, a byte each, from the highest down. */
    attributes &color(std::uint32_t argb) noexcept {
        options_.color = argb;
        return *this;
    }

    /* A number beside it: of any integer or floating-point type. */
    template <typename Number>
    typename std::enable_if<std::is_arithmetic<Number>::value, attributes &>::type payload(Number value) noexcept {
        set(value, std::is_floating_point<Number>(), std::is_signed<Number>());
        return *this;
    }

    const gputrail_mark_options *get() const noexcept { return &options_; }

  private:
    template <typename Number, typename Sign>
    void set(Number value, std::true_type, Sign) noexcept {
        const double number = static_cast<double>(value);
        std::memcpy(&options_.payload, &number, sizeof number);
        options_.payload_kind = GPUTRAIL_PAYLOAD_KIND_FLOAT;
    }

    template <typename Number>
    void set(Number value, std::false_type, std::true_type) noexcept {
        options_.payload = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
        options_.payload_kind = GPUTRAIL_PAYLOAD_KIND_SIGNED;
    }

    template <typename Number>
    void set(Number value, std::false_type, std::false_type) noexcept {
        options_.payload = static_cast<std::uint64_t>(value);
        options_.payload_kind = GPUTRAIL_PAYLOAD_KIND_UNSIGNED;
    }

    gputrail_mark_options options_ = GPUTRAIL_MARK_OPTIONS_INIT;
};

/* Marks a moment. */
inline void mark(const attributes &what) noexcept { (void)gputrail_mark(what.get()); }

/* A range on the calling thread until the end of its scope. It stays on its thread, so it neither moves nor is copied. */
class scoped_range {
  public:
    explicit scoped_range(const attributes &what) noexcept : open_(gputrail_range_push(what.get()) == GPUTRAIL_OK) {}

    scoped_range(const scoped_range &) = delete;
    scoped_range &operator=(const scoped_range &) = delete;

    ~scoped_range() { end(); }

    /* Ends the range before its scope does. Ranges of one thread end in the reverse order of their begins. */
    void end() noexcept {
        if (open_) {
            open_ = false;
            (void)gputrail_range_pop();
        }
    }

  private:
    bool open_;
};

/* A range that may overlap others and end on any thread. The one that it is moved to ends it. */
class started_range {
  public:
    /* An empty range. */
    started_range() noexcept : number_(0) {}

    explicit started_range(const attributes &what) noexcept : number_(0) {
        if (gputrail_range_start(what.get(), &number_) != GPUTRAIL_OK) number_ = 0;
    }

    started_range(const started_range &) = delete;
    started_range &operator=(const started_range &) = delete;

    started_range(started_range &&other) noexcept : number_(other.release()) {}

    started_range &operator=(started_range &&other) noexcept {
        if (this != &other) {
            end();
            number_ = other.release();
        }
        return *this;
    }

    ~started_range() { end(); }

    /* Whether there is a range to end. */
    explicit operator bool() const noexcept { return number_ != 0; }

    /* Ends the range now. */
    void end() noexcept {
        if (number_ != 0) (void)gputrail_range_end(release());
    }

    /* Gives the range away: gputrail_range_end() ends it by its number. */
    std::uint64_t release() noexcept {
        const std::uint64_t number = number_;
        number_ = 0;
        return number;
    }

  private:
    std::uint64_t number_;
};

/* ------------------------------------------------------------------------------------------------- records and names */

template <gputrail_kind Kind> using kind_constant = std::integral_constant<gputrail_kind, Kind>;

/* The kind of a structure of records: kind_of<gputrail_record_api>::value is GPUTRAIL_KIND_API. */
template <typename Record> struct kind_of;
/* Generated: the kind of each record. */
template <> struct kind_of<gputrail_record_api> : kind_constant<GPUTRAIL_KIND_API> {};
template <> struct kind_of<gputrail_record_kernel_dispatch> : kind_constant<GPUTRAIL_KIND_KERNEL_DISPATCH> {};
template <> struct kind_of<gputrail_record_memory_copy> : kind_constant<GPUTRAIL_KIND_MEMORY_COPY> {};
template <> struct kind_of<gputrail_record_memory_set> : kind_constant<GPUTRAIL_KIND_MEMORY_SET> {};
template <> struct kind_of<gputrail_record_allocation> : kind_constant<GPUTRAIL_KIND_MEMORY_ALLOCATION> {};
template <> struct kind_of<gputrail_record_synchronization> : kind_constant<GPUTRAIL_KIND_SYNCHRONIZATION> {};
template <> struct kind_of<gputrail_record_completion> : kind_constant<GPUTRAIL_KIND_COMPLETION> {};
template <> struct kind_of<gputrail_record_retirement> : kind_constant<GPUTRAIL_KIND_RETIREMENT> {};
template <> struct kind_of<gputrail_record_dependency> : kind_constant<GPUTRAIL_KIND_DEPENDENCY> {};
template <> struct kind_of<gputrail_record_child_kernel> : kind_constant<GPUTRAIL_KIND_CHILD_KERNEL> {};
template <> struct kind_of<gputrail_record_graph_node> : kind_constant<GPUTRAIL_KIND_GRAPH_NODE> {};
template <> struct kind_of<gputrail_record_graph_change> : kind_constant<GPUTRAIL_KIND_GRAPH_CHANGE> {};
template <> struct kind_of<gputrail_record_external_correlation> : kind_constant<GPUTRAIL_KIND_EXTERNAL_CORRELATION> {};
template <> struct kind_of<gputrail_record_arguments> : kind_constant<GPUTRAIL_KIND_ARGUMENTS> {};
template <> struct kind_of<gputrail_record_overhead> : kind_constant<GPUTRAIL_KIND_OVERHEAD> {};
template <> struct kind_of<gputrail_record_loss> : kind_constant<GPUTRAIL_KIND_LOSS> {};
template <> struct kind_of<gputrail_record_clock_snapshot> : kind_constant<GPUTRAIL_KIND_CLOCK_SNAPSHOT> {};
template <> struct kind_of<gputrail_record_clock_pair> : kind_constant<GPUTRAIL_KIND_CLOCK_PAIR> {};
template <> struct kind_of<gputrail_record_string_name> : kind_constant<GPUTRAIL_KIND_STRING> {};
template <> struct kind_of<gputrail_record_process> : kind_constant<GPUTRAIL_KIND_PROCESS> {};
template <> struct kind_of<gputrail_record_thread> : kind_constant<GPUTRAIL_KIND_THREAD> {};
template <> struct kind_of<gputrail_record_agent> : kind_constant<GPUTRAIL_KIND_AGENT> {};
template <> struct kind_of<gputrail_record_context> : kind_constant<GPUTRAIL_KIND_CONTEXT> {};
template <> struct kind_of<gputrail_record_queue> : kind_constant<GPUTRAIL_KIND_QUEUE> {};
template <> struct kind_of<gputrail_record_stream> : kind_constant<GPUTRAIL_KIND_STREAM> {};
template <> struct kind_of<gputrail_record_event> : kind_constant<GPUTRAIL_KIND_EVENT> {};
template <> struct kind_of<gputrail_record_module> : kind_constant<GPUTRAIL_KIND_MODULE> {};
template <> struct kind_of<gputrail_record_code_object> : kind_constant<GPUTRAIL_KIND_CODE_OBJECT> {};
template <> struct kind_of<gputrail_record_kernel_symbol> : kind_constant<GPUTRAIL_KIND_KERNEL_SYMBOL> {};
template <> struct kind_of<gputrail_record_operation_name> : kind_constant<GPUTRAIL_KIND_OPERATION> {};
template <> struct kind_of<gputrail_record_note> : kind_constant<GPUTRAIL_KIND_NOTE> {};
template <> struct kind_of<gputrail_record_external_name> : kind_constant<GPUTRAIL_KIND_EXTERNAL_NAME> {};
template <> struct kind_of<gputrail_record_agent_attribute> : kind_constant<GPUTRAIL_KIND_AGENT_ATTRIBUTE> {};
template <> struct kind_of<gputrail_record_code_bytes> : kind_constant<GPUTRAIL_KIND_CODE_BYTES> {};
template <> struct kind_of<gputrail_record_link> : kind_constant<GPUTRAIL_KIND_LINK> {};
template <> struct kind_of<gputrail_record_marker> : kind_constant<GPUTRAIL_KIND_MARKER> {};
template <> struct kind_of<gputrail_record_environment> : kind_constant<GPUTRAIL_KIND_ENVIRONMENT> {};
template <> struct kind_of<gputrail_record_unified_memory_counter> : kind_constant<GPUTRAIL_KIND_UNIFIED_MEMORY_COUNTER> {};
template <> struct kind_of<gputrail_record_preemption> : kind_constant<GPUTRAIL_KIND_PREEMPTION> {};
template <> struct kind_of<gputrail_record_host_trap_sample> : kind_constant<GPUTRAIL_KIND_PC_SAMPLE_HOST_TRAP> {};
template <> struct kind_of<gputrail_record_stochastic_sample> : kind_constant<GPUTRAIL_KIND_PC_SAMPLE_STOCHASTIC> {};
template <> struct kind_of<gputrail_record_invalid_sample> : kind_constant<GPUTRAIL_KIND_PC_SAMPLE_INVALID> {};
template <> struct kind_of<gputrail_record_sampling_totals> : kind_constant<GPUTRAIL_KIND_PC_SAMPLING_TOTALS> {};
template <> struct kind_of<gputrail_record_sample_aggregate> : kind_constant<GPUTRAIL_KIND_PC_SAMPLE_AGGREGATE> {};
template <> struct kind_of<gputrail_record_source_locator> : kind_constant<GPUTRAIL_KIND_SOURCE_LOCATOR> {};
template <> struct kind_of<gputrail_record_instruction_correlation> : kind_constant<GPUTRAIL_KIND_INSTRUCTION_CORRELATION> {};
template <> struct kind_of<gputrail_record_instruction_count> : kind_constant<GPUTRAIL_KIND_INSTRUCTION_COUNT> {};
template <> struct kind_of<gputrail_record_counter_value> : kind_constant<GPUTRAIL_KIND_COUNTER_VALUE> {};
/* The end of what is generated. */

/* The record as a structure; null if it is of another kind. */
template <typename Record> const Record *record_cast(const gputrail_record_header *record) noexcept {
    const bool is_one = record != nullptr && record->kind == kind_of<Record>::value;
    return is_one ? reinterpret_cast<const Record *>(record) : nullptr;
}

template <typename Record> const Record *record_cast(const gputrail_record_header &record) noexcept {
    return record_cast<Record>(&record);
}

/* The times of work from a buffer of joined records. Times that are not known, all of them of other records, are 0. */
inline gputrail_work_times times_of(const gputrail_record_header &record) noexcept {
    gputrail_work_times times;
    if (gputrail_times_of(&record, &times) != GPUTRAIL_OK) std::memset(&times, 0, sizeof times);
    return times;
}

/* Records in a range-based for. It ends before bytes that are no record: see gputrail_batch_next. */
class batch {
  public:
    explicit batch(const gputrail_batch *of) noexcept : batch_(of) {}

    class iterator {
      public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = gputrail_record_header;
        using difference_type = std::ptrdiff_t;
        using pointer = const gputrail_record_header *;
        using reference = const gputrail_record_header &;

        iterator() noexcept : batch_(nullptr), record_(nullptr) {}
        explicit iterator(const gputrail_batch *of) noexcept : batch_(of), record_(nullptr) { ++*this; }

        reference operator*() const noexcept { return *record_; }
        pointer operator->() const noexcept { return record_; }
        iterator &operator++() noexcept {
            if (gputrail_batch_next(batch_, &record_) != GPUTRAIL_OK) record_ = nullptr;
            return *this;
        }
        iterator operator++(int) noexcept {
            const iterator before = *this;
            ++*this;
            return before;
        }
        friend bool operator==(const iterator &left, const iterator &right) noexcept { return left.record_ == right.record_; }
        friend bool operator!=(const iterator &left, const iterator &right) noexcept { return left.record_ != right.record_; }

      private:
        const gputrail_batch *batch_;
        pointer record_;
    };

    iterator begin() const noexcept { return iterator(batch_); }
    iterator end() const noexcept { return iterator(); }

    const gputrail_batch *get() const noexcept { return batch_; }

  private:
    const gputrail_batch *batch_;
};

/* The text that a function like gputrail_string writes; empty if it fails. */
template <typename Function, typename Id> std::string text_of(Function function, Id id) {
    std::size_t length = 0;
    if (function(id, nullptr, 0, &length) != GPUTRAIL_OK) return std::string();
    std::string text(length + 1, '\0');
    if (function(id, &text[0], text.size(), &length) != GPUTRAIL_OK) return std::string();
    text.resize(length);
    return text;
}

/* Names; empty where the id is not known. */
inline std::string string(gputrail_string_id id) { return text_of(gputrail_string, id); }
inline std::string kernel_name(gputrail_kernel_id id) { return text_of(gputrail_kernel_name, id); }
inline std::string agent_name(gputrail_agent_id id) { return text_of(gputrail_agent_name, id); }

/* The name of an operation; empty if the library does not know it. */
inline std::string operation_name(gputrail_operation operation) {
    const char *name = gputrail_operation_name(operation);
    return name == nullptr ? std::string() : std::string(name);
}

#ifdef GPUTRAIL_HPP_TOOLS
/* -------------------------------------------------------------------------------------------------------------- tools */

/* A function of the library has failed. */
class error : public std::runtime_error {
  public:
    /* The failure of the call before this on the calling thread. */
    explicit error(gputrail_status status) : std::runtime_error(sentence(status)), status_(status) {}

    gputrail_status status() const noexcept { return status_; }

  private:
    static std::string sentence(gputrail_status status) {
        char text[400] = "";
        const bool is_last = gputrail_last_error(text, sizeof text) == status;
        return std::string(gputrail_status_name(status)) + ": " + (is_last ? text : gputrail_status_message(status));
    }

    gputrail_status status_;
};

/* Throws the error, if it is one. */
inline void check(gputrail_status status) {
    if (status < 0) throw error(status);
}

namespace detail {

/* How many callbacks the thread is in. */
inline int &callbacks_inside() noexcept {
    static thread_local int inside = 0;
    return inside;
}

inline void print(const char *what, const std::exception_ptr &thrown) noexcept {
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception &exception) {
        std::fprintf(stderr, "gputrail: %s: %s\n", what, exception.what());
    } catch (...) {
        std::fprintf(stderr, "gputrail: %s: an exception that is no std::exception\n", what);
    }
}

/* The function that an object of the library calls, and what it has thrown. */
class callback {
  public:
    callback() = default;
    callback(const callback &) = delete;
    callback &operator=(const callback &) = delete;
    virtual ~callback() = default;

    /* Throws what was kept, once. */
    void rethrow() {
        const std::exception_ptr thrown = take();
        if (thrown) std::rethrow_exception(thrown);
    }

    std::exception_ptr take() noexcept {
        const std::lock_guard<std::mutex> locked(mutex_);
        std::exception_ptr thrown;
        std::swap(thrown, thrown_);
        return thrown;
    }

  protected:
    template <typename Call> void run(const Call &call) noexcept {
        callbacks_inside()++;
        try {
            call();
        } catch (...) {
            const std::lock_guard<std::mutex> locked(mutex_);
            if (!thrown_) thrown_ = std::current_exception();
        }
        callbacks_inside()--;
    }

  private:
    std::mutex mutex_;
    std::exception_ptr thrown_;
};

/* Owns an object of the library, and the function that it calls, if it calls one. */
template <typename Handle, gputrail_status (*Destroy)(Handle)> class object {
  public:
    object(const object &) = delete;
    object &operator=(const object &) = delete;
    object(object &&other) noexcept : callback_(std::move(other.callback_)), handle_(other.take()) {}
    object &operator=(object &&other) noexcept {
        if (this != &other) {
            close();
            callback_ = std::move(other.callback_);
            handle_ = other.take();
        }
        return *this;
    }
    ~object() { close(); }

    Handle get() const noexcept { return handle_; }

    /* Whether there is an object: it has been neither destroyed nor moved. */
    explicit operator bool() const noexcept { return handle_.handle != 0; }

    /* Destroys the object now, and throws what the destructor would pass over. */
    void destroy() {
        if (handle_.handle == 0) return;
        const gputrail_status status = Destroy(handle_);
        // The object is still there.
        if (status == GPUTRAIL_BUSY) check(status);
        take();
        const std::unique_ptr<callback> over = uncalled();
        if (over) over->rethrow();
        // A subscriber has been destroyed with its context.
        if (status != GPUTRAIL_NO_SUCH_SUBSCRIBER) check(status);
    }

  protected:
    explicit object(std::unique_ptr<callback> of = nullptr) noexcept : callback_(std::move(of)), handle_() {}

    /* What the callback has thrown. */
    void rethrow() {
        if (callback_) callback_->rethrow();
    }

    std::unique_ptr<callback> callback_;
    Handle handle_;

  private:
    Handle take() noexcept {
        const Handle handle = handle_;
        handle_.handle = 0;
        return handle;
    }

    /* The callback, for its end. Within a callback the library does not wait for those of other threads, which may be this one:
       then it stays for ever. */
    std::unique_ptr<callback> uncalled() noexcept {
        if (callbacks_inside() > 0) (void)callback_.release();
        return std::move(callback_);
    }

    void close() noexcept {
        if (handle_.handle == 0) return;
        if (Destroy(take()) == GPUTRAIL_BUSY) {
            std::fprintf(stderr, "gputrail: a buffer is destroyed in a callback, which is not allowed: it goes on\n");
            (void)callback_.release();
            return;
        }
        const std::unique_ptr<callback> over = uncalled();
        const std::exception_ptr thrown = over ? over->take() : nullptr;
        if (thrown) print("a callback of this tool threw", thrown);
    }
};

} // namespace detail

/* The library, in a program that observes itself. In a tool it is there already. */
class library {
  public:
    library() { check(gputrail_initialise()); }
    library(const library &) = delete;
    library &operator=(const library &) = delete;
    ~library() { (void)gputrail_finalise(); }
};

/* A buffer, which hands what was recorded to a function. The function is called on one thread at a time. */
class buffer : public detail::object<gputrail_buffer, gputrail_buffer_destroy> {
  public:
    using deliver = std::function<void(const batch &)>;

    explicit buffer(deliver to, const gputrail_buffer_options &options = GPUTRAIL_BUFFER_OPTIONS_INIT)
        : object(std::unique_ptr<detail::callback>(new delivery(std::move(to)))) {
        check(gputrail_buffer_create(&options, delivery::call, callback_.get(), &handle_));
    }

    /* Delivers everything that has been recorded so far. */
    void flush() {
        check(gputrail_buffer_flush(handle_));
        rethrow();
    }

    /* Records that were dropped, of all kinds. */
    std::uint64_t dropped() const {
        gputrail_drops drops = GPUTRAIL_DROPS_INIT;
        check(gputrail_buffer_dropped_in_total(handle_, &drops));
        return drops.total;
    }

  private:
    class delivery : public detail::callback {
      public:
        explicit delivery(deliver to) : to_(std::move(to)) {}

        static void call(const gputrail_batch *records, void *user_data) noexcept {
            delivery *self = static_cast<delivery *>(static_cast<detail::callback *>(user_data));
            self->run([=] { self->to_(batch(records)); });
        }

      private:
        deliver to_;
    };
};

/* A function that is called back. It may be called on several threads at a time. */
class subscriber : public detail::object<gputrail_subscriber, gputrail_unsubscribe> {
  public:
    using function = std::function<void(gputrail_callback &)>;

    /* Whether there is a subscriber: it has been neither destroyed, by itself or with its context, nor moved. */
    explicit operator bool() const noexcept {
        std::int32_t is_enabled = 0;
        const gputrail_operation any = gputrail_operation_of(GPUTRAIL_RESOURCE_CONTEXT_CREATED);
        return handle_.handle != 0 && gputrail_callback_is_enabled(handle_, any, &is_enabled) == GPUTRAIL_OK;
    }

    /* Enables or disables callbacks for one operation, a constant such as GPUTRAIL_OPENCL_clFinish. */
    void enable(std::uint32_t operation, bool on = true) {
        check(gputrail_enable_callback(handle_, gputrail_operation_of(operation), on ? 1 : 0));
    }

  private:
    friend class context;

    subscriber(gputrail_context context, const std::vector<gputrail_operation> &operations, function to)
        : object(std::unique_ptr<detail::callback>(new subscription(std::move(to)))) {
        const gputrail_operation *first = operations.empty() ? nullptr : operations.data();
        check(gputrail_subscribe(context, first, operations.size(), subscription::call, callback_.get(), &handle_));
    }

    class subscription : public detail::callback {
      public:
        explicit subscription(function to) : to_(std::move(to)) {}

        static void call(gputrail_callback *data, void *user_data) noexcept {
            subscription *self = static_cast<subscription *>(static_cast<detail::callback *>(user_data));
            self->run([=] { self->to_(*data); });
        }

      private:
        function to_;
    };
};

/* A set of services that are started and stopped together. Operations are constants, such as GPUTRAIL_OPENCL_clFinish; none
   stand for all, as do no kinds. */
class context : public detail::object<gputrail_context, gputrail_context_destroy> {
  public:
    context() { check(gputrail_context_create(&handle_)); }

    /* Traces records of these kinds, of calls those of these operations, to a buffer. */
    void trace_to(const buffer &to, const std::vector<gputrail_kind> &kinds = {},
                  const std::vector<std::uint32_t> &operations = {}) {
        const std::vector<gputrail_operation> selected = operations_of(operations);
        gputrail_selection selection = GPUTRAIL_SELECTION_INIT;
        selection.kinds = kinds.empty() ? nullptr : kinds.data();
        selection.kind_count = kinds.size();
        selection.operations = selected.empty() ? nullptr : selected.data();
        selection.operation_count = selected.size();
        check(gputrail_context_trace_to(handle_, to.get(), &selection));
    }

    /* Calls the function for these operations while the context is started. */
    subscriber subscribe(const std::vector<std::uint32_t> &operations, subscriber::function to) {
        return subscriber(handle_, operations_of(operations), std::move(to));
    }

    /* Samples the program counter on an agent. */
    void sample(const buffer &to, gputrail_agent_id agent, const gputrail_sampling_options &options) {
        check(gputrail_context_sample(handle_, to.get(), agent, &options));
    }

    /* Collects counters of an agent. */
    void count(const buffer &to, gputrail_agent_id agent, const gputrail_counting_options &options) {
        check(gputrail_context_count(handle_, to.get(), agent, &options));
    }

    void start() { check(gputrail_context_start(handle_)); }
    void stop() { check(gputrail_context_stop(handle_)); }

    bool is_active() const {
        std::int32_t is_active = 0;
        check(gputrail_context_is_active(handle_, &is_active));
        return is_active != 0;
    }

  private:
    static std::vector<gputrail_operation> operations_of(const std::vector<std::uint32_t> &constants) {
        std::vector<gputrail_operation> operations;
        for (const std::uint32_t constant : constants) operations.push_back(gputrail_operation_of(constant));
        return operations;
    }
};

/* An external id in the records of the calling thread until the end of its scope. */
class scoped_external_id {
  public:
    scoped_external_id(gputrail_external_kind kind, gputrail_external_id id) : kind_(kind), context_() {
        check(gputrail_external_push(kind, id));
    }

    /* For the buffers and subscribers of one context. */
    scoped_external_id(const context &of, gputrail_external_kind kind, gputrail_external_id id)
        : kind_(kind), context_(of.get()) {
        check(gputrail_context_push_external(context_, kind, id));
    }

    scoped_external_id(const scoped_external_id &) = delete;
    scoped_external_id &operator=(const scoped_external_id &) = delete;

    ~scoped_external_id() {
        if (context_.handle == 0) {
            (void)gputrail_external_pop(kind_, nullptr);
        } else {
            (void)gputrail_context_pop_external(context_, kind_, nullptr);
        }
    }

  private:
    gputrail_external_kind kind_;
    gputrail_context context_;
};

namespace detail {

template <typename Tool> Tool *make_tool(gputrail_tool handle, std::true_type) { return new Tool(handle); }
template <typename Tool> Tool *make_tool(gputrail_tool, std::false_type) { return new Tool(); }

/* A tool whose object is a Tool. */
template <typename Tool> class tool {
  public:
    static const gputrail_tool_description *describe(const char *name) noexcept {
        static gputrail_tool_description description = GPUTRAIL_TOOL_DESCRIPTION_INIT;
        description.name = name;
        description.initialise = initialise;
        description.finalise = finalise;
        return &description;
    }

  private:
    static Tool *&made() noexcept {
        static Tool *made = nullptr;
        return made;
    }

    static gputrail_status initialise(gputrail_tool handle, void *) noexcept {
        try {
            made() = make_tool<Tool>(handle, std::is_constructible<Tool, gputrail_tool>());
            return GPUTRAIL_OK;
        } catch (const error &failed) {
            print("this tool cannot start", std::current_exception());
            return failed.status();
        } catch (const std::bad_alloc &) {
            return GPUTRAIL_OUT_OF_MEMORY;
        } catch (...) {
            print("this tool cannot start", std::current_exception());
            return GPUTRAIL_NOT_AVAILABLE;
        }
    }

    static void finalise(void *) noexcept {
        delete made();
        made() = nullptr;
    }
};

} // namespace detail

/* Makes a library a tool, once in it: an object of the class is made when the tool is initialised, by its constructor from a
   gputrail_tool (see gputrail_tool_finish) or by that without arguments, and destroyed when the tool is finalised. A tool
   whose constructor throws is discarded. */
#define GPUTRAIL_TOOL(name, type)                                                                        \
    extern "C" __attribute__((visibility("default"))) const gputrail_tool_description *                  \
    gputrail_tool_configure(const gputrail_tool_host *) {                                                \
        return gputrail::detail::tool<type>::describe(name);                                             \
    }
#endif

} // namespace gputrail

#endif
