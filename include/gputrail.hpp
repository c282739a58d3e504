/*
 * gputrail.hpp: markers and ranges of gputrail.h for C++11 and later.
 *
 *     #include "gputrail.hpp"
 *
 *     void step(std::uint64_t number) {
 *         gputrail::scoped_range step(gputrail::attributes("step").domain("training").payload(number));
 *         gputrail::mark("batch loaded");
 *         gputrail::started_range upload("upload");
 *         std::thread([](gputrail::started_range range) { ... }, std::move(upload)).detach();
 *     }   // the step ends here, the upload with its thread
 *
 * A scoped_range is on its thread, within those that are open there. A started_range may overlap others, move, and end on
 * any thread. Both end once, when they are destroyed at the latest. Nothing here throws. While nobody records, a range costs
 * little and leaves no trace. A range that the library refuses (a text that is not UTF-8) is empty, and its end does nothing.
 */
#ifndef GPUTRAIL_HPP
#define GPUTRAIL_HPP

#include "gputrail.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace gputrail {

/* The attributes of a mark or range. Texts must last until the mark is made or the range begins; the library keeps copies. */
class attributes {
  public:
    /* With a name only. A null name is refused by the library. */
    attributes(const char *name) noexcept {
        std::memset(&options_, 0, sizeof options_);
        options_.size = sizeof options_;
        options_.name = name;
        options_.payload_kind = GPUTRAIL_PAYLOAD_KIND_NONE;
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

    gputrail_mark_options options_;
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

} // namespace gputrail

#endif
