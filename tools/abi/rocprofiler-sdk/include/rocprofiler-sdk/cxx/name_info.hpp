/* rocprofiler-sdk for gputrail: the names of kinds and operations, for C++17. */
#ifndef ROCPROFILER_SDK_CXX_NAME_INFO_HPP
#define ROCPROFILER_SDK_CXX_NAME_INFO_HPP

#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/callback_tracing.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rocprofiler {
namespace sdk {
namespace utility {

/* A kind, with the names of its operations by their numbers. Text is std::string_view or std::string. */
template <typename Kind, typename Text = std::string_view>
struct name_info_impl {
    using enum_type = Kind;
    using value_type = Text;
    using item_type = std::pair<rocprofiler_tracing_operation_t, const Text *>;
    using item_array_t = std::vector<item_type>;

    Kind value = static_cast<Kind>(0);
    Text name = {};
    std::vector<Text> operations = {};

    std::string_view operator()() const { return name; }
    std::string_view operator()(std::size_t operation) const { return operations.at(operation); }
    std::string_view operator[](std::size_t operation) const { return operations.at(operation); }

    item_array_t items() const {
        item_array_t all;
        for (std::size_t number = 0; number < operations.size(); ++number)
            all.emplace_back(static_cast<rocprofiler_tracing_operation_t>(number), &operations[number]);
        return all;
    }
};

/* All kinds, by their numbers. */
template <typename Kind, typename Text = std::string_view>
class name_info {
public:
    using enum_type = Kind;
    using value_type = name_info_impl<Kind, Text>;
    using item_array_t = std::vector<const value_type *>;

    void emplace(Kind kind, const char *name) {
        const auto place = static_cast<std::size_t>(kind);
        if (kinds.size() <= place) kinds.resize(place + 1);
        kinds[place].value = kind;
        kinds[place].name = name;
    }

    void emplace(Kind kind, rocprofiler_tracing_operation_t operation, const char *name) {
        const auto place = static_cast<std::size_t>(operation);
        auto &operations = kinds.at(static_cast<std::size_t>(kind)).operations;
        if (operations.size() <= place) operations.resize(place + 1);
        operations[place] = name;
    }

    std::string_view at(Kind kind) const { return kinds.at(static_cast<std::size_t>(kind)).name; }
    std::string_view at(Kind kind, rocprofiler_tracing_operation_t operation) const {
        return kinds.at(static_cast<std::size_t>(kind)).operations.at(static_cast<std::size_t>(operation));
    }

    item_array_t items() const {
        item_array_t all;
        for (const auto &kind : kinds) all.push_back(&kind);
        return all;
    }

    value_type &operator[](std::size_t kind) { return kinds.at(kind); }
    const value_type &operator[](std::size_t kind) const { return kinds.at(kind); }

    auto size() const { return kinds.size(); }
    auto begin() { return kinds.begin(); }
    auto begin() const { return kinds.begin(); }
    auto end() { return kinds.end(); }
    auto end() const { return kinds.end(); }

private:
    std::vector<value_type> kinds = {};
};

}  // namespace utility

template <typename Text = std::string_view>
using callback_name_info_t = utility::name_info<rocprofiler_callback_tracing_kind_t, Text>;
template <typename Text = std::string_view>
using buffer_name_info_t = utility::name_info<rocprofiler_buffer_tracing_kind_t, Text>;
using callback_name_info = callback_name_info_t<>;
using buffer_name_info = buffer_name_info_t<>;

template <typename Text = std::string_view>
callback_name_info_t<Text> get_callback_tracing_names() {
    using names = callback_name_info_t<Text>;
    const auto operation = [](rocprofiler_callback_tracing_kind_t kind, rocprofiler_tracing_operation_t number, void *all) {
        const char *name = nullptr;
        rocprofiler_query_callback_tracing_kind_operation_name(kind, number, &name, nullptr);
        if (name && number >= 0) static_cast<names *>(all)->emplace(kind, number, name);
        return 0;
    };
    static const auto visit_operation = +operation;
    const auto kind = [](rocprofiler_callback_tracing_kind_t of, void *all) {
        const char *name = nullptr;
        rocprofiler_query_callback_tracing_kind_name(of, &name, nullptr);
        if (name) static_cast<names *>(all)->emplace(of, name);
        rocprofiler_iterate_callback_tracing_kind_operations(of, visit_operation, all);
        return 0;
    };
    names all;
    rocprofiler_iterate_callback_tracing_kinds(kind, &all);
    return all;
}

template <typename Text = std::string_view>
buffer_name_info_t<Text> get_buffer_tracing_names() {
    using names = buffer_name_info_t<Text>;
    const auto operation = [](rocprofiler_buffer_tracing_kind_t kind, rocprofiler_tracing_operation_t number, void *all) {
        const char *name = nullptr;
        rocprofiler_query_buffer_tracing_kind_operation_name(kind, number, &name, nullptr);
        if (name && number >= 0) static_cast<names *>(all)->emplace(kind, number, name);
        return 0;
    };
    static const auto visit_operation = +operation;
    const auto kind = [](rocprofiler_buffer_tracing_kind_t of, void *all) {
        const char *name = nullptr;
        rocprofiler_query_buffer_tracing_kind_name(of, &name, nullptr);
        if (name) static_cast<names *>(all)->emplace(of, name);
        rocprofiler_iterate_buffer_tracing_kind_operations(of, visit_operation, all);
        return 0;
    };
    names all;
    rocprofiler_iterate_buffer_tracing_kinds(kind, &all);
    return all;
}

}  // namespace sdk
}  // namespace rocprofiler

#endif
