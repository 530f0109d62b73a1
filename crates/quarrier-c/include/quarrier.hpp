// quarrier for C++17: classes and exceptions over quarrier.h, and nothing beside this header to link.
//
// Errors are exceptions: quarrier::Error and the classes under it. A callback may throw; the call that it
// belongs to ends then and throws the same.
//
// Threads: as in the standard library, several threads may call const member functions of an object at a
// time, and one that calls another must be alone with it. quarrier::SparseStore and files in one may be used
// by many threads in any way.
#ifndef QUARRIER_HPP
#define QUARRIER_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "quarrier.h"

namespace quarrier {

/// A range: its offset and its length, in bytes.
using Span = std::pair<std::uint64_t, std::uint64_t>;
/// Ranges in order.
using Spans = std::vector<Span>;

/// Whatever goes wrong.
class Error : public std::runtime_error {
public:
    Error(quarrier_status status, const std::string &message)
        : std::runtime_error(message), status_(status) {}

    /// Of which kind it is.
    quarrier_status status() const noexcept { return status_; }

private:
    quarrier_status status_;
};

/// An argument cannot be used.
class ArgumentError : public Error {
public:
    using Error::Error;
};

/// A callback ended the call.
class StoppedError : public Error {
public:
    using Error::Error;
};

/// A defect of the library. Please report it.
class InternalError : public Error {
public:
    using Error::Error;
};

/// Something about a range.
class RangeError : public Error {
public:
    RangeError(quarrier_status status, const std::string &message, Span span)
        : Error(status, message), span_(span) {}

    /// The range.
    Span span() const noexcept { return span_; }

private:
    Span span_;
};

/// Bytes were read that are not held: span() is the first range that is missing.
class NotHeldError : public RangeError {
public:
    using RangeError::RangeError;
};

/// A range passes the end of the file.
class BeyondLengthError : public RangeError {
public:
    using RangeError::RangeError;
};

/// A range passes the greatest offset, 2^64 - 1.
class OverflowError : public RangeError {
public:
    using RangeError::RangeError;
};

/// Bytes are pinned: those of span().
class PinnedError : public RangeError {
public:
    using RangeError::RangeError;
};

/// A write differs from the bytes held, in the byte at span().first.
class ConflictError : public RangeError {
public:
    ConflictError(quarrier_status status, const std::string &message, Span span, std::uint8_t held,
                  std::uint8_t given)
        : RangeError(status, message, span), held_(held), given_(given) {}

    /// The byte as held.
    std::uint8_t held() const noexcept { return held_; }
    /// The byte as given.
    std::uint8_t given() const noexcept { return given_; }

private:
    std::uint8_t held_;
    std::uint8_t given_;
};

/// Stored bytes are damaged.
class CorruptError : public Error {
public:
    using Error::Error;
};

/// The store has no file of this name.
class UnknownFileError : public Error {
public:
    using Error::Error;
};

/// The store has a file of this name already.
class DuplicateFileError : public Error {
public:
    using Error::Error;
};

/// What is not for users.
namespace detail {

struct Free {
    void operator()(quarrier_error *object) const noexcept { quarrier_error_free(object); }
    void operator()(quarrier_bytes *object) const noexcept { quarrier_bytes_free(object); }
    void operator()(quarrier_sparse_file *object) const noexcept { quarrier_sparse_file_free(object); }
    void operator()(quarrier_sparse_store *object) const noexcept { quarrier_sparse_store_free(object); }
    void operator()(quarrier_read_ahead *object) const noexcept { quarrier_read_ahead_free(object); }
};

template <typename Object>
using Owned = std::unique_ptr<Object, Free>;

[[noreturn]] inline void raise(quarrier_status status, quarrier_error *raw) {
    const Owned<quarrier_error> error(raw);
    const std::string message = quarrier_error_message(raw);
    quarrier_span about{0, 0};
    quarrier_error_span(raw, &about);
    const Span span(about.offset, about.length);
    std::uint8_t held = 0;
    std::uint8_t given = 0;
    switch (status) {
    case QUARRIER_STATUS_STOPPED: throw StoppedError(status, message);
    case QUARRIER_STATUS_ARGUMENT: throw ArgumentError(status, message);
    case QUARRIER_STATUS_NOT_HELD: throw NotHeldError(status, message, span);
    case QUARRIER_STATUS_CONFLICT:
        quarrier_error_values(raw, &held, &given);
        throw ConflictError(status, message, span, held, given);
    case QUARRIER_STATUS_BEYOND_LENGTH: throw BeyondLengthError(status, message, span);
    case QUARRIER_STATUS_OVERFLOW: throw OverflowError(status, message, span);
    case QUARRIER_STATUS_PINNED: throw PinnedError(status, message, span);
    case QUARRIER_STATUS_CORRUPT: throw CorruptError(status, message);
    case QUARRIER_STATUS_UNKNOWN_FILE: throw UnknownFileError(status, message);
    case QUARRIER_STATUS_DUPLICATE_FILE: throw DuplicateFileError(status, message);
    case QUARRIER_STATUS_INTERNAL: throw InternalError(status, message);
    default: throw Error(status, message);
    }
}

/// Throws what went wrong. The error is taken by reference, since the call that sets it is evaluated before or after
/// the other argument.
inline void check(quarrier_status status, quarrier_error *const &error) {
    if (status != QUARRIER_STATUS_OK) {
        raise(status, error);
    }
}

/// Runs a call that fills an array of ranges, with more room until all have some.
template <typename Call>
Spans spans(Call call) {
    std::array<quarrier_span, 16> few;
    std::size_t count = 0;
    quarrier_error *error = nullptr;
    check(call(few.data(), few.size(), &count, &error), error);
    Spans result;
    if (count == 0) {
        return result;
    }
    std::vector<quarrier_span> many;
    const quarrier_span *given = few.data();
    for (std::size_t room = few.size(); count > room; room = many.size(), given = many.data()) {
        many.resize(count);
        check(call(many.data(), many.size(), &count, &error), error);
    }
    result.reserve(count);
    for (std::size_t i = 0; i < count; i++) {
        result.emplace_back(given[i].offset, given[i].length);
    }
    return result;
}

inline std::vector<quarrier_span> given(const Spans &spans) {
    std::vector<quarrier_span> given;
    given.reserve(spans.size());
    for (const Span &span : spans) {
        given.push_back({span.first, span.second});
    }
    return given;
}

inline std::string text(const quarrier_bytes *bytes) {
    return std::string(static_cast<const char *>(quarrier_bytes_data(bytes)), quarrier_bytes_length(bytes));
}

/// A callback of the caller's, behind which no exception passes: it is kept, and thrown once the call of C
/// has come back. A callback returns nothing, or whether to go on.
template <typename Callback>
class Guarded {
public:
    explicit Guarded(Callback callback) : callback_(std::move(callback)) {}

    /// The function for C that takes an `Argument` before the context.
    template <typename Argument>
    auto call() noexcept -> int (*)(Argument, void *) {
        return [](Argument argument, void *context) noexcept -> int {
            return static_cast<Guarded *>(context)->run(argument);
        };
    }

    void *context() noexcept { return this; }

    /// Throws what the callback threw, or what went wrong otherwise. That the callback wanted no more is no
    /// error: false.
    bool check(quarrier_status status, quarrier_error *error) {
        if (thrown_ || is_stopped_) {
            quarrier_error_free(error);
        }
        if (thrown_) {
            std::rethrow_exception(thrown_);
        }
        if (!is_stopped_) {
            detail::check(status, error);
        }
        return !is_stopped_;
    }

private:
    template <typename Argument>
    int run(Argument &&argument) noexcept {
        try {
            if constexpr (std::is_void_v<std::invoke_result_t<Callback &, Argument>>) {
                callback_(std::forward<Argument>(argument));
            } else {
                is_stopped_ = !callback_(std::forward<Argument>(argument));
            }
        } catch (...) {
            thrown_ = std::current_exception();
        }
        return is_stopped_ || thrown_;
    }

    Callback callback_;
    std::exception_ptr thrown_ = nullptr;
    bool is_stopped_ = false;
};

} // namespace detail

/// The version of the library, as "0.1.0".
inline std::string version() { return quarrier_version(); }

/// How a sparse file begins.
struct SparseOptions {
    /// When the file was last modified, in seconds since 1970.
    std::optional<double> modified = std::nullopt;
    /// The length of the file in bytes: nothing beyond it is needed or accepted.
    std::optional<std::uint64_t> length = std::nullopt;
    /// The entity tag of this version of the file.
    std::optional<std::string> etag = std::nullopt;
    /// Whether a write that differs from the bytes held replaces them. By default it fails.
    bool replaces = false;
    /// Whether memory is overwritten before it is given back.
    bool wipes = false;
};

/// What requests cost, and what they may look like.
struct CostModel : quarrier_cost_model {
    /// A server some 20 ms away, 50 MB/s, free of charge, requests of 16 MiB at most.
    CostModel() : quarrier_cost_model{} {
        struct_bytes = sizeof(quarrier_cost_model);
        quarrier_error *error = nullptr;
        detail::check(quarrier_cost_model_default(this, &error), error);
    }
};

/// The parts of a file that were fetched so far, by their place in it.
class SparseFile {
public:
    /// A file of which nothing is held.
    explicit SparseFile(const std::string &id, const SparseOptions &options = {}) {
        quarrier_sparse_options given{};
        given.struct_bytes = sizeof given;
        given.has_modified = options.modified.has_value();
        given.modified = options.modified.value_or(0);
        given.has_length = options.length.has_value();
        given.length = options.length.value_or(0);
        given.etag = options.etag ? options.etag->c_str() : nullptr;
        given.replaces = options.replaces;
        given.wipes = options.wipes;
        quarrier_sparse_file *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_new(id.c_str(), &given, &made, &error), error);
        file_.reset(made);
    }

    /// Takes over a file of the C interface.
    explicit SparseFile(quarrier_sparse_file *file) noexcept : file_(file) {}

    /// The file that to_bytes() was asked of; CorruptError for any other bytes.
    static SparseFile from_bytes(const void *data, std::size_t length) {
        quarrier_sparse_file *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_from_bytes(data, length, &made, &error), error);
        return SparseFile(made);
    }

    /// As bytes, with a checksum.
    std::string to_bytes() const {
        quarrier_bytes *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_to_bytes(get(), &made, &error), error);
        const detail::Owned<quarrier_bytes> bytes(made);
        return detail::text(bytes.get());
    }

    /// Its name.
    std::string id() const {
        std::string id(quarrier_sparse_file_id(get(), nullptr, 0) + 1, '\0');
        id.resize(quarrier_sparse_file_id(get(), id.data(), id.size()));
        return id;
    }

    /// When the file was last modified, in seconds since 1970, where that is known.
    std::optional<double> modified() const noexcept {
        double seconds = 0;
        return quarrier_sparse_file_modified(get(), &seconds) ? std::optional(seconds) : std::nullopt;
    }

    /// Its length in bytes, where that is known.
    std::optional<std::uint64_t> length() const noexcept {
        std::uint64_t bytes = 0;
        return quarrier_sparse_file_length(get(), &bytes) ? std::optional(bytes) : std::nullopt;
    }

    /// Sets its length in bytes; BeyondLengthError where a byte behind it is held.
    void set_length(std::uint64_t bytes) {
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_set_length(get(), bytes, &error), error);
    }

    /// Whether all bytes of the range are held.
    bool has(std::uint64_t offset, std::uint64_t length) const noexcept {
        return quarrier_sparse_file_has(get(), offset, length);
    }

    /// Takes bytes in, and returns how many of them were not held before. ConflictError where a byte
    /// differs from the one held; then nothing is written.
    std::uint64_t write(std::uint64_t offset, const void *data, std::size_t length) {
        std::uint64_t new_bytes = 0;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_write(get(), offset, data, length, &new_bytes, &error), error);
        return new_bytes;
    }

    /// Reads bytes; NotHeldError where one is missing.
    void read(std::uint64_t offset, void *out, std::size_t length) const {
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_read(get(), offset, out, length, &error), error);
    }

    /// Reads many ranges, one behind the other, into `out`, which has `length` bytes: as many as they.
    void read_many(const Spans &ranges, void *out, std::size_t length) const {
        const auto given = detail::given(ranges);
        quarrier_error *error = nullptr;
        detail::check(
            quarrier_sparse_file_read_many(get(), given.data(), given.size(), out, length, &error), error);
    }

    /// Takes many ranges in, whose bytes lie one behind the other in `data`.
    std::uint64_t write_many(const Spans &ranges, const void *data, std::size_t length) {
        const auto given = detail::given(ranges);
        std::uint64_t new_bytes = 0;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_write_many(get(), given.data(), given.size(), data, length,
                                                      &new_bytes, &error),
                      error);
        return new_bytes;
    }

    /// The ranges that are missing, in order, each at least `greedy` bytes long where that is not 0.
    Spans need(std::uint64_t offset, std::uint64_t length, std::uint64_t greedy = 0) const {
        return detail::spans([&](quarrier_span *spans, std::size_t room, std::size_t *count,
                                 quarrier_error **error) {
            return quarrier_sparse_file_need(get(), offset, length, greedy, spans, room, count, error);
        });
    }

    /// As need(), of many ranges, which may overlap and come in any order.
    Spans need_many(const Spans &wanted, std::uint64_t greedy = 0) const {
        const auto given = detail::given(wanted);
        return detail::spans([&](quarrier_span *spans, std::size_t room, std::size_t *count,
                                 quarrier_error **error) {
            return quarrier_sparse_file_need_many(get(), given.data(), given.size(), greedy, spans, room,
                                                  count, error);
        });
    }

    /// The cheapest requests for what is missing of many ranges.
    Spans need_many(const Spans &wanted, const CostModel &model) const {
        const auto given = detail::given(wanted);
        return detail::spans([&](quarrier_span *spans, std::size_t room, std::size_t *count,
                                 quarrier_error **error) {
            return quarrier_sparse_file_need_by_cost(get(), given.data(), given.size(), &model, spans, room,
                                                     count, error);
        });
    }

    /// Erases the bytes held of the range, and returns how many those were; PinnedError where one is pinned.
    std::uint64_t erase(std::uint64_t offset, std::uint64_t length) {
        std::uint64_t erased = 0;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_erase(get(), offset, length, &erased, &error), error);
        return erased;
    }

    /// Erases everything that is not pinned, and returns how many bytes that were.
    std::uint64_t clear() noexcept { return quarrier_sparse_file_clear(get()); }

    /// Evicts bytes, those first that were not used for longest, until at most `bytes_max` are held.
    std::uint64_t evict(std::uint64_t bytes_max) noexcept {
        return quarrier_sparse_file_evict(get(), bytes_max);
    }

    /// Keeps a range from being evicted or erased until it is unpinned as often.
    void pin(std::uint64_t offset, std::uint64_t length) {
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_pin(get(), offset, length, &error), error);
    }

    /// Takes back one pin of exactly this range.
    void unpin(std::uint64_t offset, std::uint64_t length) {
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_unpin(get(), offset, length, &error), error);
    }

    /// The blocks that are held, in order, none touching another.
    Spans blocks() const {
        return detail::spans([this](quarrier_span *spans, std::size_t room, std::size_t *count,
                                    quarrier_error **error) {
            return quarrier_sparse_file_blocks(get(), spans, room, count, error);
        });
    }

    /// Bytes held.
    std::uint64_t num_bytes() const noexcept { return quarrier_sparse_file_num_bytes(get()); }
    /// Blocks held.
    std::size_t num_blocks() const noexcept { return quarrier_sparse_file_num_blocks(get()); }
    /// Bytes of memory taken.
    std::size_t memory_bytes() const noexcept { return quarrier_sparse_file_memory_bytes(get()); }

    /// What was asked so far.
    quarrier_sparse_counters counters() const {
        quarrier_sparse_counters counters{};
        counters.struct_bytes = sizeof counters;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_counters(get(), &counters, &error), error);
        return counters;
    }

    /// As the C interface has it.
    quarrier_sparse_file *get() noexcept { return file_.get(); }
    /// As the C interface has it.
    const quarrier_sparse_file *get() const noexcept { return file_.get(); }

private:
    detail::Owned<quarrier_sparse_file> file_;
};

/// Many sparse files by name, which hold no more bytes together than their budget.
class SparseStore {
public:
    /// A store whose files hold at most so many bytes, or any number.
    explicit SparseStore(std::optional<std::uint64_t> bytes_max = std::nullopt) {
        quarrier_sparse_store *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_store_new(bytes_max.value_or(QUARRIER_UNKNOWN), &made, &error), error);
        store_.reset(made);
    }

    /// The store that to_bytes() was asked of.
    static SparseStore from_bytes(const void *data, std::size_t length,
                                  std::optional<std::uint64_t> bytes_max = std::nullopt) {
        quarrier_sparse_store *made = nullptr;
        quarrier_error *error = nullptr;
        const auto budget = bytes_max.value_or(QUARRIER_UNKNOWN);
        detail::check(quarrier_sparse_store_from_bytes(data, length, budget, &made, &error), error);
        SparseStore store;
        store.store_.reset(made);
        return store;
    }

    /// As bytes, with checksums.
    std::string to_bytes() const {
        quarrier_bytes *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_store_to_bytes(store_.get(), &made, &error), error);
        const detail::Owned<quarrier_bytes> bytes(made);
        return detail::text(bytes.get());
    }

    /// Puts a file in, under its name; `file` is that of the store then. DuplicateFileError where there is
    /// one of this name.
    void insert(SparseFile &file) const {
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_store_insert(store_.get(), file.get(), &error), error);
    }

    /// The file of this name; UnknownFileError where there is none.
    SparseFile get(const std::string &id) const {
        quarrier_sparse_file *found = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_store_get(store_.get(), id.c_str(), &found, &error), error);
        return SparseFile(found);
    }

    /// Whether there is a file of this name.
    bool has(const std::string &id) const noexcept {
        return quarrier_sparse_store_has(store_.get(), id.c_str());
    }

    /// Takes the file of this name out; UnknownFileError where there is none.
    void remove(const std::string &id) const {
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_store_remove(store_.get(), id.c_str(), &error), error);
    }

    /// The names of all files, in order.
    std::vector<std::string> ids() const {
        std::vector<std::string> ids;
        detail::Guarded guarded([&ids](const char *id) { ids.emplace_back(id); });
        quarrier_error *error = nullptr;
        const auto status = quarrier_sparse_store_ids(store_.get(), guarded.call<const char *>(),
                                                      guarded.context(), &error);
        guarded.check(status, error);
        return ids;
    }

    /// How many files there are.
    std::size_t num_files() const noexcept { return quarrier_sparse_store_num_files(store_.get()); }
    /// Bytes held by all files.
    std::uint64_t num_bytes() const noexcept { return quarrier_sparse_store_num_bytes(store_.get()); }

    /// Evicts bytes of any file until at most `bytes_max` are held, and returns how many those were.
    std::uint64_t evict(std::uint64_t bytes_max) const noexcept {
        return quarrier_sparse_store_evict(store_.get(), bytes_max);
    }

private:
    detail::Owned<quarrier_sparse_store> store_;
};

/// Plans the requests of one reader, from its reads so far: more than is asked for, where that saves a
/// request.
class ReadAhead {
public:
    /// A planner that learns from observe() what requests cost.
    ReadAhead() : ReadAhead(static_cast<const CostModel *>(nullptr)) {}
    /// A planner for whom requests cost as the model says.
    explicit ReadAhead(const CostModel &model) : ReadAhead(&model) {}

    /// The requests to make before the range of `file` can be read: none where all of it is held.
    Spans plan(const SparseFile &file, std::uint64_t offset, std::uint64_t length) {
        const quarrier_span *requests = nullptr;
        std::size_t count = 0;
        quarrier_error *error = nullptr;
        detail::check(quarrier_read_ahead_plan(ahead_.get(), file.get(), offset, length, &requests, &count,
                                               &error),
                      error);
        Spans planned;
        planned.reserve(count);
        for (std::size_t i = 0; i < count; i++) {
            planned.emplace_back(requests[i].offset, requests[i].length);
        }
        return planned;
    }

    /// Takes note of a request: its bytes, the seconds until the first came, and until the last.
    void observe(std::uint64_t bytes, double first_byte_seconds, double all_seconds) {
        quarrier_error *error = nullptr;
        detail::check(quarrier_read_ahead_observe(ahead_.get(), bytes, first_byte_seconds, all_seconds, &error),
                      error);
    }

    /// Bytes that come within the time of a request, as far as is known.
    std::uint64_t reach_bytes() const noexcept { return quarrier_read_ahead_reach_bytes(ahead_.get()); }

private:
    explicit ReadAhead(const CostModel *model) {
        quarrier_read_ahead *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_read_ahead_new(model, &made, &error), error);
        ahead_.reset(made);
    }

    detail::Owned<quarrier_read_ahead> ahead_;
};

} // namespace quarrier

#endif
