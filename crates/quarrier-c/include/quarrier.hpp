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
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
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

/// A callback or a quarrier::Stop ended the call.
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

/// A name stands for no file, and for nothing that a server has.
class NotFoundError : public Error {
public:
    using Error::Error;
};

/// The system refused.
class SystemError : public Error {
public:
    SystemError(quarrier_status status, const std::string &message, int number)
        : Error(status, message), number_(number) {}

    /// Its error number (errno).
    int number() const noexcept { return number_; }

private:
    int number_;
};

/// A name or source stands for something that cannot be used in this way.
class UnusableError : public Error {
public:
    using Error::Error;
};

/// A remote source failed.
class RemoteError : public Error {
public:
    using Error::Error;
};

/// A pattern, a set of patterns or an engine cannot search.
class PatternError : public Error {
public:
    using Error::Error;
};

/// A condition or statement is wrong, or has no value for a row.
class QueryError : public Error {
public:
    using Error::Error;
};

/// A source is damaged, or has not the content that it was opened for.
class DataError : public Error {
public:
    using Error::Error;
};

/// There is not as much memory as the call needs.
class MemoryError : public Error {
public:
    using Error::Error;
};

/// The object is used in a child that was forked after it was made.
class ForkedError : public Error {
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
    void operator()(quarrier_stop *object) const noexcept { quarrier_stop_free(object); }
    void operator()(quarrier_report *object) const noexcept { quarrier_report_free(object); }
    void operator()(quarrier_source *object) const noexcept { quarrier_source_free(object); }
    void operator()(quarrier_search *object) const noexcept { quarrier_search_free(object); }
    void operator()(quarrier_table *object) const noexcept { quarrier_table_free(object); }
    void operator()(quarrier_shared_region *object) const noexcept {
        quarrier_shared_region_free(object);
    }
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
    case QUARRIER_STATUS_NOT_FOUND: throw NotFoundError(status, message);
    case QUARRIER_STATUS_SYSTEM: throw SystemError(status, message, quarrier_error_errno(raw));
    case QUARRIER_STATUS_UNUSABLE: throw UnusableError(status, message);
    case QUARRIER_STATUS_REMOTE: throw RemoteError(status, message);
    case QUARRIER_STATUS_PATTERN: throw PatternError(status, message);
    case QUARRIER_STATUS_QUERY: throw QueryError(status, message);
    case QUARRIER_STATUS_DATA: throw DataError(status, message);
    case QUARRIER_STATUS_MEMORY: throw MemoryError(status, message);
    case QUARRIER_STATUS_FORKED: throw ForkedError(status, message);
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

/// Ends calls that it was given to, from any thread or signal handler.
class Stop {
public:
    Stop() {
        quarrier_stop *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_stop_new(&made, &error), error);
        stop_.reset(made);
    }

    /// Asks the calls that have it to end. It cannot be taken back.
    void request() const noexcept { quarrier_stop_request(stop_.get()); }
    /// Whether it was requested.
    bool is_requested() const noexcept { return quarrier_stop_is_requested(stop_.get()); }

    /// As the C interface has it.
    const quarrier_stop *get() const noexcept { return stop_.get(); }

private:
    detail::Owned<quarrier_stop> stop_;
};

/// What a search, a carving or a filter came to.
struct Report {
    /// Bytes of the sources that were worked on.
    std::uint64_t bytes = 0;
    /// Findings, files or messages.
    std::uint64_t rows = 0;
    /// Messages that were left out because they do not parse.
    std::uint64_t rejected = 0;
    /// The time it took.
    double seconds = 0;
    /// Whether the callback or a Stop ended it.
    bool is_stopped = false;
    /// Ranges that could not be read, each with its source. No row is about such bytes.
    std::vector<std::pair<std::string, Span>> unreadable = {};
};

namespace detail {

inline Report report(quarrier_report *raw, bool is_stopped) {
    const Owned<quarrier_report> owned(raw);
    Report report;
    report.bytes = quarrier_report_bytes(raw);
    report.rows = quarrier_report_rows(raw);
    report.rejected = quarrier_report_rejected(raw);
    report.seconds = quarrier_report_seconds(raw);
    report.is_stopped = is_stopped;
    const char *source = nullptr;
    quarrier_span span{0, 0};
    for (std::size_t i = 0; quarrier_report_unreadable(raw, i, &source, &span); i++) {
        report.unreadable.emplace_back(source, Span(span.offset, span.length));
    }
    return report;
}

/// Runs a call with a callback and a report. That the callback, or a Stop, ended it is no error.
template <typename Guarded, typename Call>
Report reported(Guarded &guarded, const Stop *stop, Call call) {
    quarrier_report *raw = nullptr;
    quarrier_error *error = nullptr;
    const quarrier_status status = call(&raw, &error);
    const bool is_stopped = status == QUARRIER_STATUS_STOPPED && stop != nullptr && stop->is_requested();
    Owned<quarrier_report> owned(raw);
    if (is_stopped) {
        quarrier_error_free(error);
        error = nullptr;
    }
    const bool is_whole = guarded.check(is_stopped ? QUARRIER_STATUS_OK : status, error);
    return report(owned.release(), is_stopped || !is_whole);
}

inline const char *text_or_null(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

inline const quarrier_stop *raw(const Stop *stop) { return stop == nullptr ? nullptr : stop->get(); }

} // namespace detail

/// How sources are opened.
struct OpenOptions {
    /// The folder in which fetched bytes are kept, for later runs and other processes; empty: none.
    std::string cache = {};
    /// The most bytes in that folder; 0: 10 GiB.
    std::uint64_t cache_bytes_max = 0;
    /// The most bytes of remote sources that are held in memory; 0: a default.
    std::uint64_t memory_bytes_max = 0;
    /// The most requests under way at once; 0: a default.
    std::size_t requests_max = 0;
    /// Whether local files are read past the page cache (O_DIRECT).
    bool direct = false;
};

/// Something with bytes at offsets. Many threads may read it at a time.
class Source {
public:
    /// Opens a path or a URL: a file, a device, an image of any known format, or a remote object.
    explicit Source(const std::string &name, const OpenOptions &options = {}) {
        quarrier_open_options given{};
        given.struct_bytes = sizeof given;
        given.cache = detail::text_or_null(options.cache);
        given.cache_bytes_max = options.cache_bytes_max;
        given.memory_bytes_max = options.memory_bytes_max;
        given.requests_max = options.requests_max;
        given.direct = options.direct;
        quarrier_source *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_source_open(name.c_str(), &given, &made, &error), error);
        source_.reset(made);
    }

    /// A source of bytes in memory, which have to stay as long as it.
    static Source of_memory(const std::string &name, const void *data, std::size_t length) {
        quarrier_source *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_source_of_memory(name.c_str(), data, length, &made, &error), error);
        return Source(made);
    }

    /// The path or URL, without what is secret in it.
    std::string name() const { return quarrier_source_name(get()); }
    /// The length in bytes when it was opened.
    std::uint64_t length() const noexcept { return quarrier_source_length(get()); }

    /// Reads until `out` is full or the source ends, and returns how many bytes that were.
    std::size_t read(std::uint64_t offset, void *out, std::size_t length) const {
        std::size_t read = 0;
        quarrier_error *error = nullptr;
        detail::check(quarrier_source_read(get(), offset, out, length, &read, &error), error);
        return read;
    }

    /// Reads many ranges, one behind the other, into `out`, which has `length` bytes: as many as they. Of a
    /// remote source, all that is missing is fetched first, in as few requests as pay.
    void read_many(const Spans &ranges, void *out, std::size_t length) const {
        const auto given = detail::given(ranges);
        quarrier_error *error = nullptr;
        detail::check(quarrier_source_read_many(get(), given.data(), given.size(), out, length, &error), error);
    }

    /// What the reads of a remote source cost so far.
    quarrier_remote_counters counters() const {
        quarrier_remote_counters counters{};
        counters.struct_bytes = sizeof counters;
        quarrier_error *error = nullptr;
        detail::check(quarrier_source_counters(get(), &counters, &error), error);
        return counters;
    }

    /// As the C interface has it.
    const quarrier_source *get() const noexcept { return source_.get(); }

private:
    explicit Source(quarrier_source *source) noexcept : source_(source) {}

    detail::Owned<quarrier_source> source_;
};

/// A pattern: text, unless it is made by hex(), regex() or bytes().
class Pattern {
public:
    enum class Kind { text, bytes, hex, regex };

    Pattern(const char *text) : text_(text) {}
    Pattern(std::string text) : text_(std::move(text)) {}
    Pattern(Kind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

    /// The same pattern with a name.
    Pattern named(std::string name) const {
        Pattern pattern = *this;
        pattern.name_ = std::move(name);
        return pattern;
    }

    /// Adds it to a search of the C interface.
    void add_to(quarrier_search *search) const {
        const char *name = name_ ? name_->c_str() : nullptr;
        quarrier_error *error = nullptr;
        quarrier_status status = QUARRIER_STATUS_OK;
        switch (kind_) {
        case Kind::text: status = quarrier_search_add_text(search, text_.c_str(), name, &error); break;
        case Kind::bytes:
            status = quarrier_search_add_bytes(search, text_.data(), text_.size(), name, &error);
            break;
        case Kind::hex: status = quarrier_search_add_hex(search, text_.c_str(), name, &error); break;
        case Kind::regex: status = quarrier_search_add_regex(search, text_.c_str(), name, &error); break;
        }
        detail::check(status, error);
    }

private:
    Kind kind_ = Kind::text;
    std::string text_;
    std::optional<std::string> name_ = std::nullopt;
};

/// A pattern in hexadecimal: "FF D8 ?? 4? [4-6] (89|50)".
inline Pattern hex(std::string text) { return Pattern(Pattern::Kind::hex, std::move(text)); }
/// A regex over bytes.
inline Pattern regex(std::string text) { return Pattern(Pattern::Kind::regex, std::move(text)); }
/// Any bytes.
inline Pattern bytes(std::string data) { return Pattern(Pattern::Kind::bytes, std::move(data)); }

/// One pattern or several.
class Patterns {
public:
    Patterns(std::initializer_list<Pattern> patterns) : patterns_(patterns) {}
    Patterns(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {}
    Patterns(const std::vector<std::string> &texts) : patterns_(texts.begin(), texts.end()) {}
    Patterns(Pattern pattern) { patterns_.push_back(std::move(pattern)); }
    Patterns(const char *text) { patterns_.emplace_back(text); }
    Patterns(std::string text) { patterns_.emplace_back(std::move(text)); }

    std::vector<Pattern>::const_iterator begin() const noexcept { return patterns_.begin(); }
    std::vector<Pattern>::const_iterator end() const noexcept { return patterns_.end(); }

private:
    std::vector<Pattern> patterns_;
};

/// How patterns are searched for.
struct SearchOptions {
    /// Only findings at multiples of this; 0: anywhere.
    std::uint64_t aligned = 0;
    /// The search ends with so many findings; 0: any number.
    std::uint64_t findings_max = 0;
    /// Only the bytes from here on, to before `range_end`; 0: to the end.
    std::uint64_t range_start = 0;
    std::uint64_t range_end = 0;
    /// The longest match of a regex in bytes; 0: 64 KiB. A longer one is an error.
    std::size_t regex_length_max = 0;
    /// Threads; 0: as many as there are CPUs.
    std::size_t workers = 0;
    /// The engine for literals and hex patterns; empty: the best for them.
    std::string engine = {};
    /// "cpu", "gpu", "gpu:1", "auto" or "all"; empty: "cpu".
    std::string device = {};
    /// Code pages in which literals are searched for too, such as "windows-1251,koi8-r".
    std::string encodings = {};
    /// Built-in scanners, such as "email,iban". Their findings follow the patterns in number.
    std::string features = {};
    /// Whether upper and lower case are the same.
    bool ignore_case = false;
    /// Whether literals are searched for as UTF-16LE, UTF-16BE, under XOR with one byte, within base64, too.
    bool utf16 = false;
    bool utf16be = false;
    bool xored = false;
    bool base64 = false;
    /// Whether only whole words count.
    bool word = false;
    /// Ends the search, or nullptr.
    const Stop *stop = nullptr;
};

/// A finding. The texts live as long as the callback that gets it.
struct Finding {
    /// The name of the source.
    std::string_view source;
    /// The offset of its first byte in the source.
    std::uint64_t offset;
    /// Its length in bytes.
    std::uint64_t length;
    /// Which pattern, by the order in which they were given, from 0.
    std::size_t pattern;
    /// The name of the pattern, or the pattern as it was written.
    std::string_view pattern_name;
    /// The bytes found, at most 4,096 of them.
    std::string_view match;

    explicit Finding(const quarrier_finding &given)
        : source(given.source), offset(given.offset), length(given.length), pattern(given.pattern),
          pattern_name(given.pattern_name),
          match(static_cast<const char *>(given.found), given.found_length) {}
};

namespace detail {

inline Owned<quarrier_search> searching(const Patterns &patterns, const SearchOptions &options) {
    quarrier_search_options given{};
    given.struct_bytes = sizeof given;
    given.aligned = options.aligned;
    given.findings_max = options.findings_max;
    given.range_start = options.range_start;
    given.range_end = options.range_end;
    given.regex_length_max = options.regex_length_max;
    given.workers = options.workers;
    given.engine = text_or_null(options.engine);
    given.device = text_or_null(options.device);
    given.encodings = text_or_null(options.encodings);
    given.features = text_or_null(options.features);
    given.ignore_case = options.ignore_case;
    given.utf16 = options.utf16;
    given.utf16be = options.utf16be;
    given.xored = options.xored;
    given.base64 = options.base64;
    given.word = options.word;
    quarrier_search *made = nullptr;
    quarrier_error *error = nullptr;
    check(quarrier_search_new(&given, &made, &error), error);
    Owned<quarrier_search> search(made);
    for (const Pattern &pattern : patterns) {
        pattern.add_to(search.get());
    }
    return search;
}

} // namespace detail

/// Calls back with every occurrence of patterns in what a name stands for: a path, a folder, a glob, an image, a
/// URL. The callback gets a Finding and returns nothing, or false to end the search. Findings come in the order
/// of their offsets, one at a time, from any thread.
template <typename Callback>
Report search(const std::string &source, const Patterns &patterns, Callback callback,
              const SearchOptions &options = {}) {
    const auto search = detail::searching(patterns, options);
    const auto take = [&callback](const quarrier_finding *found) { return callback(Finding(*found)); };
    detail::Guarded guarded(take);
    return detail::reported(guarded, options.stop, [&](quarrier_report **report, quarrier_error **error) {
        return quarrier_search_run(search.get(), source.c_str(), detail::raw(options.stop),
                                   guarded.template call<const quarrier_finding *>(), guarded.context(),
                                   report, error);
    });
}

/// As above, in an open source.
template <typename Callback>
Report search(const Source &source, const Patterns &patterns, Callback callback,
              const SearchOptions &options = {}) {
    const auto search = detail::searching(patterns, options);
    const auto take = [&callback](const quarrier_finding *found) { return callback(Finding(*found)); };
    detail::Guarded guarded(take);
    return detail::reported(guarded, options.stop, [&](quarrier_report **report, quarrier_error **error) {
        return quarrier_search_run_source(search.get(), source.get(), detail::raw(options.stop),
                                          guarded.template call<const quarrier_finding *>(),
                                          guarded.context(), report, error);
    });
}

/// What is carved, and where it goes.
struct CarveOptions {
    /// The folder that files are written into, new or empty; empty: nothing is written.
    std::string folder = {};
    /// Types, such as "jpg,png"; empty: all.
    std::string types = {};
    /// A file with signatures of more types.
    std::string signatures = {};
    /// Only the bytes from here on, to before `range_end`; 0: to the end.
    std::uint64_t range_start = 0;
    std::uint64_t range_end = 0;
    /// No file is longer; 0: any length.
    std::uint64_t file_bytes_max = 0;
    /// The most memory for files that are put together; 0: 1 GiB.
    std::uint64_t memory_bytes_max = 0;
    /// Threads; 0: as many as there are CPUs.
    std::size_t workers = 0;
    /// Whether the folder has what an earlier run left, which goes on.
    bool resume = false;
    /// Whether only files that are valid are kept.
    bool valid_only = false;
    /// Whether files inside archives are carved, too.
    bool embedded = false;
    /// Whether only what file systems say is free is carved.
    bool unallocated = false;
    /// Whether fragments are looked for at length.
    bool thorough = false;
    /// Whether rows go without a SHA-256, for which all bytes are read.
    bool no_digests = false;
    /// Ends the carving, or nullptr.
    const Stop *stop = nullptr;
};

/// A file that was carved. The texts live as long as the callback that gets it.
struct CarvedFile {
    /// The name of the source.
    std::string_view source;
    /// Its type, such as "jpg".
    std::string_view kind;
    /// The offset of its first byte in the source; inside an archive, that of the archive.
    std::uint64_t offset;
    /// Its length in bytes.
    std::uint64_t length;
    /// Where its bytes lie in the source; none inside an archive.
    Spans extents;
    /// "valid", "partial" or "header".
    std::string_view status;
    /// Why it is not valid; empty where it is.
    std::string_view reason;
    /// In hexadecimal, or empty.
    std::string_view sha256;
    /// Where it was written, from the folder on; without a folder, where it would be.
    std::string_view path;
    /// The way to it from the outermost archive, where it lay in one.
    std::optional<std::string_view> container;

    explicit CarvedFile(const quarrier_carved_file &given)
        : source(given.source), kind(given.kind), offset(given.offset), length(given.length),
          status(given.status), reason(given.reason), sha256(given.sha256), path(given.path) {
        for (std::size_t i = 0; i < given.extent_count; i++) {
            extents.emplace_back(given.extents[i].offset, given.extents[i].length);
        }
        if (given.container != nullptr) {
            container = given.container;
        }
    }
};

namespace detail {

inline quarrier_carve_options carving(const CarveOptions &options) {
    quarrier_carve_options given{};
    given.struct_bytes = sizeof given;
    given.folder = text_or_null(options.folder);
    given.types = text_or_null(options.types);
    given.signatures = text_or_null(options.signatures);
    given.range_start = options.range_start;
    given.range_end = options.range_end;
    given.file_bytes_max = options.file_bytes_max;
    given.memory_bytes_max = options.memory_bytes_max;
    given.workers = options.workers;
    given.resume = options.resume;
    given.valid_only = options.valid_only;
    given.embedded = options.embedded;
    given.unallocated = options.unallocated;
    given.thorough = options.thorough;
    given.no_digests = options.no_digests;
    return given;
}

} // namespace detail

/// Recovers files from what a name stands for: a path, an image, a URL. The callback gets a CarvedFile and
/// returns nothing, or false to end the carving; a folder can be resumed then.
template <typename Callback>
Report carve(const std::string &source, const CarveOptions &options, Callback callback) {
    const auto given = detail::carving(options);
    const auto take = [&callback](const quarrier_carved_file *file) { return callback(CarvedFile(*file)); };
    detail::Guarded guarded(take);
    return detail::reported(guarded, options.stop, [&](quarrier_report **report, quarrier_error **error) {
        return quarrier_carve(source.c_str(), &given, detail::raw(options.stop),
                              guarded.template call<const quarrier_carved_file *>(), guarded.context(),
                              report, error);
    });
}

/// As above, from an open source.
template <typename Callback>
Report carve(const Source &source, const CarveOptions &options, Callback callback) {
    const auto given = detail::carving(options);
    const auto take = [&callback](const quarrier_carved_file *file) { return callback(CarvedFile(*file)); };
    detail::Guarded guarded(take);
    return detail::reported(guarded, options.stop, [&](quarrier_report **report, quarrier_error **error) {
        return quarrier_carve_source(source.get(), &given, detail::raw(options.stop),
                                     guarded.template call<const quarrier_carved_file *>(),
                                     guarded.context(), report, error);
    });
}

/// How messages are filtered.
struct FilterOptions {
    /// "ndjson", "fix", "nvfix", "csv" or "xml"; empty: each source tells.
    std::string format = {};
    /// The columns of an Arrow stream, such as "side,qty"; empty: those of the first messages.
    std::string columns = {};
    /// A file for the messages that do not parse, one JSON object a line.
    std::string rejects = {};
    /// The run ends with so many messages; 0: any number.
    std::uint64_t matches_max = 0;
    /// Threads; 0: as many as there are CPUs.
    std::size_t workers = 0;
    /// Ends the run, or nullptr.
    const Stop *stop = nullptr;
};

/// A message. It lives as long as the callback that gets it.
struct Message {
    /// The name of the source.
    std::string_view source;
    /// Where it starts, after decompression.
    std::uint64_t offset;
    /// Its bytes, without the end of the line.
    std::string_view bytes;

    explicit Message(const quarrier_message &given)
        : source(given.source), offset(given.offset),
          bytes(static_cast<const char *>(given.data), given.length) {}
};

namespace detail {

inline quarrier_filter_options filtering(const FilterOptions &options) {
    quarrier_filter_options given{};
    given.struct_bytes = sizeof given;
    given.format = text_or_null(options.format);
    given.columns = text_or_null(options.columns);
    given.rejects = text_or_null(options.rejects);
    given.matches_max = options.matches_max;
    given.workers = options.workers;
    return given;
}

} // namespace detail

/// Calls back with the messages of what a name stands for, for which an SQL-92 condition is true. The callback
/// gets a Message and returns nothing, or false to end the run.
template <typename Callback>
Report filter(const std::string &source, const std::string &condition, Callback callback,
              const FilterOptions &options = {}) {
    const auto given = detail::filtering(options);
    const auto take = [&callback](const quarrier_message *message) { return callback(Message(*message)); };
    detail::Guarded guarded(take);
    return detail::reported(guarded, options.stop, [&](quarrier_report **report, quarrier_error **error) {
        return quarrier_filter(source.c_str(), condition.c_str(), &given, detail::raw(options.stop),
                               guarded.template call<const quarrier_message *>(), guarded.context(), report,
                               error);
    });
}

/// How messages are loaded.
struct TableOptions {
    /// "ndjson", "fix", "nvfix", "csv", "xml" or "arrow"; empty: each source tells.
    std::string format = {};
    /// The path of a QuickFIX data dictionary.
    std::string dictionary = {};
    /// Threads; 0: as many as there are CPUs.
    std::size_t workers = 0;
    /// Whether the column _message has each message as it stands in the source.
    bool keep_bytes = false;
    /// Ends the load, or nullptr.
    const Stop *stop = nullptr;
};

/// Messages as columns, or the rows of an answer. Nothing changes it.
class Table {
public:
    /// Loads the messages of what a name stands for: a path, all files of a glob, a URL; compressed or not.
    static Table load(const std::string &name, const TableOptions &options = {}) {
        quarrier_table_options given{};
        given.struct_bytes = sizeof given;
        given.format = detail::text_or_null(options.format);
        given.dictionary = detail::text_or_null(options.dictionary);
        given.workers = options.workers;
        given.keep_bytes = options.keep_bytes;
        quarrier_table *made = nullptr;
        quarrier_error *error = nullptr;
        const auto *stop = detail::raw(options.stop);
        detail::check(quarrier_table_load(name.c_str(), &given, stop, &made, &error), error);
        return Table(made);
    }

    /// Copies an Arrow stream into packed columns; it is taken over and released.
    static Table import_stream(ArrowArrayStream *stream, const Stop *stop = nullptr) {
        quarrier_table *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_table_import(stream, detail::raw(stop), &made, &error), error);
        return Table(made);
    }

    /// Gives the rows as an Arrow stream, which the caller releases.
    void export_stream(ArrowArrayStream *stream) const {
        quarrier_error *error = nullptr;
        detail::check(quarrier_table_export(get(), stream, &error), error);
    }

    /// Answers a statement about the table, which is called m in it.
    Table query(const std::string &sql, const Stop *stop = nullptr) const {
        quarrier_table *answer = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_table_query(get(), sql.c_str(), detail::raw(stop), &answer, &error), error);
        return Table(answer);
    }

    /// Answers many statements in one pass over the table.
    std::vector<Table> query_many(const std::vector<std::string> &sqls, const Stop *stop = nullptr) const {
        std::vector<const char *> given;
        for (const std::string &sql : sqls) {
            given.push_back(sql.c_str());
        }
        std::vector<quarrier_table *> answers(sqls.size());
        quarrier_error *error = nullptr;
        detail::check(quarrier_table_query_many(get(), given.data(), given.size(), detail::raw(stop),
                                                answers.data(), &error),
                      error);
        std::vector<Table> tables;
        for (quarrier_table *answer : answers) {
            tables.push_back(Table(answer));
        }
        return tables;
    }

    /// How many rows there are.
    std::uint64_t rows() const noexcept { return quarrier_table_rows(get()); }
    /// How many columns there are.
    std::size_t columns() const noexcept { return quarrier_table_columns(get()); }
    /// Bytes of memory that the columns take.
    std::size_t memory_bytes() const noexcept { return quarrier_table_memory_bytes(get()); }
    /// How many messages were left out when it was loaded, because they do not parse.
    std::uint64_t rejected() const noexcept { return quarrier_table_rejected(get()); }

    /// As the C interface has it.
    const quarrier_table *get() const noexcept { return table_.get(); }

private:
    explicit Table(quarrier_table *table) noexcept : table_(table) {}

    detail::Owned<quarrier_table> table_;
};

/// Zeroed memory that this process can share with others.
class SharedRegion {
public:
    /// New memory.
    explicit SharedRegion(std::size_t length) {
        quarrier_shared_region *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_shared_region_new(length, &made, &error), error);
        region_.reset(made);
    }

    /// The memory behind a descriptor that another process handed over.
    static SharedRegion of_fd(int fd, std::size_t length) {
        quarrier_shared_region *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_shared_region_from_fd(fd, length, &made, &error), error);
        return SharedRegion(made);
    }

    /// The first byte.
    void *data() const noexcept { return quarrier_shared_region_data(region_.get()); }
    /// Its length in bytes.
    std::size_t length() const noexcept { return quarrier_shared_region_length(region_.get()); }
    /// Its descriptor, which stays the region's.
    int fd() const noexcept { return quarrier_shared_region_fd(region_.get()); }

private:
    explicit SharedRegion(quarrier_shared_region *region) noexcept : region_(region) {}

    detail::Owned<quarrier_shared_region> region_;
};

} // namespace quarrier

#endif
