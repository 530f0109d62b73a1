// quarrier for C++17: classes and exceptions over quarrier.h, header only.
//
// Errors are exceptions: quarrier::Error and its subclasses. A callback may throw: the call that it
// belongs to then ends and throws the same exception.
//
// Threads: as in the standard library, several threads may call const member functions of an object at the
// same time, and a thread that calls another one must be the only one to use the object. Several threads may
// use a quarrier::SparseStore and the files in it in any way.
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

/// The base class of all errors.
class Error : public std::runtime_error {
public:
    Error(quarrier_status status, const std::string &message)
        : std::runtime_error(message), status_(status) {}

    /// The status.
    quarrier_status status() const noexcept { return status_; }

private:
    quarrier_status status_;
};

/// An argument is invalid.
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

/// An error about a range.
class RangeError : public Error {
public:
    RangeError(quarrier_status status, const std::string &message, Span span)
        : Error(status, message), span_(span) {}

    /// The range that the error is about.
    Span span() const noexcept { return span_; }

private:
    Span span_;
};

/// A read touched bytes that are not held: span() is the first missing range.
class NotHeldError : public RangeError {
public:
    using RangeError::RangeError;
};

/// A range extends past the end of the file.
class BeyondLengthError : public RangeError {
public:
    using RangeError::RangeError;
};

/// A range extends past the greatest offset, 2^64 - 1.
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

/// The store already has a file of this name.
class DuplicateFileError : public Error {
public:
    using Error::Error;
};

/// A name refers to nothing, locally or on a server.
class NotFoundError : public Error {
public:
    using Error::Error;
};

/// The operating system returned an error.
class SystemError : public Error {
public:
    SystemError(quarrier_status status, const std::string &message, int number)
        : Error(status, message), number_(number) {}

    /// The error number (errno).
    int number() const noexcept { return number_; }

private:
    int number_;
};

/// A name or source cannot be used in this way.
class UnusableError : public Error {
public:
    using Error::Error;
};

/// A remote source failed.
class RemoteError : public Error {
public:
    using Error::Error;
};

/// A pattern, a set of patterns or an engine is invalid.
class PatternError : public Error {
public:
    using Error::Error;
};

/// A condition or statement is invalid, or has no value for a row.
class QueryError : public Error {
public:
    using Error::Error;
};

/// A source is damaged, or does not have the expected content.
class DataError : public Error {
public:
    using Error::Error;
};

/// The call needs more memory than there is.
class MemoryError : public Error {
public:
    using Error::Error;
};

/// The object is used in a child that was forked after the object was created.
class ForkedError : public Error {
public:
    using Error::Error;
};

/// Implementation details.
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

/// Throws the error of a call. Takes the error by reference, since the call that sets it may be evaluated
/// before or after the other argument.
inline void check(quarrier_status status, quarrier_error *const &error) {
    if (status != QUARRIER_STATUS_OK) {
        raise(status, error);
    }
}

/// Runs a call that fills an array of ranges, with more room until all of them fit.
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

/// Wraps the caller's callback so that no exception leaves it: it is stored, and thrown after the C call
/// has returned. A callback returns nothing, or whether to continue.
template <typename Callback>
class Guarded {
public:
    explicit Guarded(Callback callback) : callback_(std::move(callback)) {}

    /// The C function that takes an `Argument` before the context.
    template <typename Argument>
    auto call() noexcept -> int (*)(Argument, void *) {
        return [](Argument argument, void *context) noexcept -> int {
            return static_cast<Guarded *>(context)->run(argument);
        };
    }

    void *context() noexcept { return this; }

    /// Throws the callback's exception, or the error of the call. If the callback ended the call, that is
    /// no error: returns false.
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

/// The version of the library, such as "0.1.0".
inline std::string version() { return quarrier_version(); }

/// Options of a new sparse file.
struct SparseOptions {
    /// The modification time of the file, in seconds since 1970.
    std::optional<double> modified = std::nullopt;
    /// The length of the file in bytes: nothing beyond it is needed or accepted.
    std::optional<std::uint64_t> length = std::nullopt;
    /// The entity tag of this version of the file.
    std::optional<std::string> etag = std::nullopt;
    /// Whether a write that differs from the bytes held replaces them. By default it fails.
    bool replaces = false;
    /// Whether to overwrite memory before freeing it.
    bool wipes = false;
};

/// The cost of requests, and the limits on them.
struct CostModel : quarrier_cost_model {
    /// A server about 20 ms away, 50 MB/s, free of charge, requests of at most 16 MiB.
    CostModel() : quarrier_cost_model{} {
        struct_bytes = sizeof(quarrier_cost_model);
        quarrier_error *error = nullptr;
        detail::check(quarrier_cost_model_default(this, &error), error);
    }
};

/// A partial copy of a file: the parts fetched so far, by offset.
class SparseFile {
public:
    /// Creates a file that holds no bytes.
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

    /// Takes ownership of a file of the C interface.
    explicit SparseFile(quarrier_sparse_file *file) noexcept : file_(file) {}

    /// Restores a file from the bytes of to_bytes(); throws CorruptError for any other bytes.
    static SparseFile from_bytes(const void *data, std::size_t length) {
        quarrier_sparse_file *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_from_bytes(data, length, &made, &error), error);
        return SparseFile(made);
    }

    /// Serialises the file, with a checksum.
    std::string to_bytes() const {
        quarrier_bytes *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_to_bytes(get(), &made, &error), error);
        const detail::Owned<quarrier_bytes> bytes(made);
        return detail::text(bytes.get());
    }

    /// The name of the file.
    std::string id() const {
        std::string id(quarrier_sparse_file_id(get(), nullptr, 0) + 1, '\0');
        id.resize(quarrier_sparse_file_id(get(), id.data(), id.size()));
        return id;
    }

    /// The modification time of the file, in seconds since 1970, if known.
    std::optional<double> modified() const noexcept {
        double seconds = 0;
        return quarrier_sparse_file_modified(get(), &seconds) ? std::optional(seconds) : std::nullopt;
    }

    /// The length of the file in bytes, if known.
    std::optional<std::uint64_t> length() const noexcept {
        std::uint64_t bytes = 0;
        return quarrier_sparse_file_length(get(), &bytes) ? std::optional(bytes) : std::nullopt;
    }

    /// Sets the length of the file in bytes; throws BeyondLengthError if it holds a byte beyond it.
    void set_length(std::uint64_t bytes) {
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_set_length(get(), bytes, &error), error);
    }

    /// Returns whether all bytes of the range are held.
    bool has(std::uint64_t offset, std::uint64_t length) const noexcept {
        return quarrier_sparse_file_has(get(), offset, length);
    }

    /// Writes bytes, and returns how many of them were not held before. Throws ConflictError, and
    /// writes nothing, if a byte differs from the one held.
    std::uint64_t write(std::uint64_t offset, const void *data, std::size_t length) {
        std::uint64_t new_bytes = 0;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_write(get(), offset, data, length, &new_bytes, &error), error);
        return new_bytes;
    }

    /// Reads bytes; throws NotHeldError if one is missing.
    void read(std::uint64_t offset, void *out, std::size_t length) const {
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_read(get(), offset, out, length, &error), error);
    }

    /// Reads many ranges consecutively into `out`; `length` must be the sum of their lengths.
    void read_many(const Spans &ranges, void *out, std::size_t length) const {
        const auto given = detail::given(ranges);
        quarrier_error *error = nullptr;
        detail::check(
            quarrier_sparse_file_read_many(get(), given.data(), given.size(), out, length, &error), error);
    }

    /// Writes many ranges, whose bytes are consecutive in `data`.
    std::uint64_t write_many(const Spans &ranges, const void *data, std::size_t length) {
        const auto given = detail::given(ranges);
        std::uint64_t new_bytes = 0;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_write_many(get(), given.data(), given.size(), data, length,
                                                      &new_bytes, &error),
                      error);
        return new_bytes;
    }

    /// The missing ranges, in order, each at least `greedy` bytes long if that is not 0.
    Spans need(std::uint64_t offset, std::uint64_t length, std::uint64_t greedy = 0) const {
        return detail::spans([&](quarrier_span *spans, std::size_t room, std::size_t *count,
                                 quarrier_error **error) {
            return quarrier_sparse_file_need(get(), offset, length, greedy, spans, room, count, error);
        });
    }

    /// Like need(), for many ranges, which may overlap and be in any order.
    Spans need_many(const Spans &wanted, std::uint64_t greedy = 0) const {
        const auto given = detail::given(wanted);
        return detail::spans([&](quarrier_span *spans, std::size_t room, std::size_t *count,
                                 quarrier_error **error) {
            return quarrier_sparse_file_need_many(get(), given.data(), given.size(), greedy, spans, room,
                                                  count, error);
        });
    }

    /// The cheapest requests for the missing bytes of many ranges.
    Spans need_many(const Spans &wanted, const CostModel &model) const {
        const auto given = detail::given(wanted);
        return detail::spans([&](quarrier_span *spans, std::size_t room, std::size_t *count,
                                 quarrier_error **error) {
            return quarrier_sparse_file_need_by_cost(get(), given.data(), given.size(), &model, spans, room,
                                                     count, error);
        });
    }

    /// Erases the bytes held in the range, and returns their number; throws PinnedError if one is pinned.
    std::uint64_t erase(std::uint64_t offset, std::uint64_t length) {
        std::uint64_t erased = 0;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_erase(get(), offset, length, &erased, &error), error);
        return erased;
    }

    /// Erases everything that is not pinned, and returns the number of bytes erased.
    std::uint64_t clear() noexcept { return quarrier_sparse_file_clear(get()); }

    /// Evicts bytes, the least recently used first, until at most `bytes_max` are held.
    std::uint64_t evict(std::uint64_t bytes_max) noexcept {
        return quarrier_sparse_file_evict(get(), bytes_max);
    }

    /// Protects a range from eviction and erasure until it is unpinned as often.
    void pin(std::uint64_t offset, std::uint64_t length) {
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_pin(get(), offset, length, &error), error);
    }

    /// Undoes one pin of exactly this range.
    void unpin(std::uint64_t offset, std::uint64_t length) {
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_unpin(get(), offset, length, &error), error);
    }

    /// The blocks that are held, in order; no block touches another.
    Spans blocks() const {
        return detail::spans([this](quarrier_span *spans, std::size_t room, std::size_t *count,
                                    quarrier_error **error) {
            return quarrier_sparse_file_blocks(get(), spans, room, count, error);
        });
    }

    /// The offset after the last byte held, or 0 if none is held.
    std::uint64_t held_end() const noexcept { return quarrier_sparse_file_held_end(get()); }
    /// The number of bytes held.
    std::uint64_t num_bytes() const noexcept { return quarrier_sparse_file_num_bytes(get()); }
    /// The number of blocks held.
    std::size_t num_blocks() const noexcept { return quarrier_sparse_file_num_blocks(get()); }
    /// The memory of the file in bytes.
    std::size_t memory_bytes() const noexcept { return quarrier_sparse_file_memory_bytes(get()); }

    /// Counts of the calls so far.
    quarrier_sparse_counters counters() const {
        quarrier_sparse_counters counters{};
        counters.struct_bytes = sizeof counters;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_file_counters(get(), &counters, &error), error);
        return counters;
    }

    /// The object of the C interface.
    quarrier_sparse_file *get() noexcept { return file_.get(); }
    /// The object of the C interface.
    const quarrier_sparse_file *get() const noexcept { return file_.get(); }

private:
    detail::Owned<quarrier_sparse_file> file_;
};

/// Sparse files by name, with a shared budget of bytes.
class SparseStore {
public:
    /// Creates a store whose files hold at most this many bytes together, or any number.
    explicit SparseStore(std::optional<std::uint64_t> bytes_max = std::nullopt) {
        quarrier_sparse_store *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_store_new(bytes_max.value_or(QUARRIER_UNKNOWN), &made, &error), error);
        store_.reset(made);
    }

    /// Restores a store from the bytes of to_bytes().
    static SparseStore from_bytes(const void *data, std::size_t length,
                                  std::optional<std::uint64_t> bytes_max = std::nullopt) {
        SparseStore store;
        quarrier_sparse_store *made = nullptr;
        quarrier_error *error = nullptr;
        const auto budget = bytes_max.value_or(QUARRIER_UNKNOWN);
        detail::check(quarrier_sparse_store_from_bytes(data, length, budget, &made, &error), error);
        store.store_.reset(made);
        return store;
    }

    /// Serialises all files, with checksums.
    std::string to_bytes() const {
        quarrier_bytes *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_store_to_bytes(store_.get(), &made, &error), error);
        const detail::Owned<quarrier_bytes> bytes(made);
        return detail::text(bytes.get());
    }

    /// Adds a file under its name; `file` then refers to the one in the store. Throws DuplicateFileError
    /// if the store has a file of this name.
    void insert(SparseFile &file) const {
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_store_insert(store_.get(), file.get(), &error), error);
    }

    /// The file of this name; throws UnknownFileError if there is none.
    SparseFile get(const std::string &id) const {
        quarrier_sparse_file *found = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_sparse_store_get(store_.get(), id.c_str(), &found, &error), error);
        return SparseFile(found);
    }

    /// Returns whether the store has a file of this name.
    bool has(const std::string &id) const noexcept {
        return quarrier_sparse_store_has(store_.get(), id.c_str());
    }

    /// Removes the file of this name; throws UnknownFileError if there is none.
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

    /// The number of files.
    std::size_t num_files() const noexcept { return quarrier_sparse_store_num_files(store_.get()); }
    /// The number of bytes held by all files.
    std::uint64_t num_bytes() const noexcept { return quarrier_sparse_store_num_bytes(store_.get()); }

    /// Evicts bytes of any file until at most `bytes_max` are held, and returns the number of bytes
    /// evicted.
    std::uint64_t evict(std::uint64_t bytes_max) const noexcept {
        return quarrier_sparse_store_evict(store_.get(), bytes_max);
    }

private:
    detail::Owned<quarrier_sparse_store> store_;
};

/// Plans the requests of one reader from its earlier reads: fetches ahead if that saves a request.
class ReadAhead {
public:
    /// Creates a planner that learns the cost of requests from observe().
    ReadAhead() : ReadAhead(static_cast<const CostModel *>(nullptr)) {}
    /// Creates a planner for the request costs in the model.
    explicit ReadAhead(const CostModel &model) : ReadAhead(&model) {}

    /// The requests to make before the range of `file` can be read: none if all of it is held.
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

    /// Records a request: its bytes, the seconds until the first byte arrived, and until the last.
    void observe(std::uint64_t bytes, double first_byte_seconds, double all_seconds) {
        quarrier_error *error = nullptr;
        detail::check(quarrier_read_ahead_observe(ahead_.get(), bytes, first_byte_seconds, all_seconds, &error),
                      error);
    }

    /// The number of bytes that arrive within the latency of a request, by current estimates.
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

/// A stop request, which may come from any thread or signal handler.
class Stop {
public:
    Stop() {
        quarrier_stop *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_stop_new(&made, &error), error);
        stop_.reset(made);
    }

    /// Requests the calls that have this object to end. The request cannot be revoked.
    void request() const noexcept { quarrier_stop_request(stop_.get()); }
    /// Returns whether a stop was requested.
    bool is_requested() const noexcept { return quarrier_stop_is_requested(stop_.get()); }

    /// The object of the C interface.
    const quarrier_stop *get() const noexcept { return stop_.get(); }

private:
    detail::Owned<quarrier_stop> stop_;
};

/// The account of a search, a carving run or a filter.
struct Report {
    /// Bytes of the sources that were processed.
    std::uint64_t bytes = 0;
    /// Findings, files or messages.
    std::uint64_t rows = 0;
    /// The number of rejected messages: those that do not parse.
    std::uint64_t rejected = 0;
    /// The duration of the run in seconds.
    double seconds = 0;
    /// Whether the callback or a Stop ended the run.
    bool is_stopped = false;
    /// Ranges that could not be read, each with its source. No row includes such bytes.
    std::vector<std::pair<std::string, Span>> unreadable = {};
    /// Lines to read before trusting the rows, each with its source: a missing segment of an image, a
    /// skipped partition, a damaged file system.
    std::vector<std::string> notices = {};
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
    for (std::size_t i = 0; const char *notice = quarrier_report_notice(raw, i); i++) {
        report.notices.emplace_back(notice);
    }
    return report;
}

/// Runs a call with a callback and a report. A run that the callback or a Stop ended is not an error.
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

/// Options for opening sources.
struct OpenOptions {
    /// The folder that caches fetched bytes, for later runs and other processes; empty for none.
    std::string cache = {};
    /// Maximum size of that folder in bytes; 0 for 10 GiB.
    std::uint64_t cache_bytes_max = 0;
    /// Maximum memory for bytes of remote sources, in bytes; 0 for the default.
    std::uint64_t memory_bytes_max = 0;
    /// Maximum number of concurrent requests; 0 for the default.
    std::size_t requests_max = 0;
    /// Whether reads of local files bypass the page cache (O_DIRECT).
    bool direct = false;
};

/// An object with bytes at offsets. Several threads may read it at the same time.
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

    /// Creates a source of bytes in memory, which must remain valid as long as the source.
    static Source of_memory(const std::string &name, const void *data, std::size_t length) {
        quarrier_source *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_source_of_memory(name.c_str(), data, length, &made, &error), error);
        return Source(made);
    }

    /// The path or URL, without secrets.
    std::string name() const { return quarrier_source_name(get()); }
    /// A line to read before trusting the bytes, such as that a segment of an image is missing; else empty.
    std::string notice() const {
        const char *notice = quarrier_source_notice(get());
        return notice == nullptr ? std::string() : notice;
    }
    /// The length in bytes at the time of opening.
    std::uint64_t length() const noexcept { return quarrier_source_length(get()); }

    /// Reads until `out` is full or the source ends, and returns the number of bytes read.
    std::size_t read(std::uint64_t offset, void *out, std::size_t length) const {
        std::size_t read = 0;
        quarrier_error *error = nullptr;
        detail::check(quarrier_source_read(get(), offset, out, length, &read, &error), error);
        return read;
    }

    /// Reads many ranges consecutively into `out`; `length` must be the sum of their lengths. Of a remote
    /// source, all missing bytes are fetched first, in the cheapest requests.
    void read_many(const Spans &ranges, void *out, std::size_t length) const {
        const auto given = detail::given(ranges);
        quarrier_error *error = nullptr;
        detail::check(quarrier_source_read_many(get(), given.data(), given.size(), out, length, &error), error);
    }

    /// The cost of a remote source's reads so far.
    quarrier_remote_counters counters() const {
        quarrier_remote_counters counters{};
        counters.struct_bytes = sizeof counters;
        quarrier_error *error = nullptr;
        detail::check(quarrier_source_counters(get(), &counters, &error), error);
        return counters;
    }

    /// The object of the C interface.
    const quarrier_source *get() const noexcept { return source_.get(); }

private:
    explicit Source(quarrier_source *source) noexcept : source_(source) {}

    detail::Owned<quarrier_source> source_;
};

/// A pattern: a string, unless it comes from hex(), regex() or bytes().
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

    /// Adds the pattern to a search of the C interface.
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

/// Options of a search.
struct SearchOptions {
    /// Report only findings at multiples of this; 0 for any offset.
    std::uint64_t aligned = 0;
    /// Maximum number of findings; 0 for no limit.
    std::uint64_t findings_max = 0;
    /// The first offset to search, and the offset after the last byte; 0 for the end of the source.
    std::uint64_t range_start = 0;
    std::uint64_t range_end = 0;
    /// Maximum length of a regex match in bytes; 0 for 64 KiB. A longer match is an error.
    std::size_t regex_length_max = 0;
    /// The number of threads; 0 for one per CPU.
    std::size_t workers = 0;
    /// The engine for literals and hex patterns; empty for the best one.
    std::string engine = {};
    /// "cpu", "gpu", "gpu:1", "auto" or "all"; empty for "cpu".
    std::string device = {};
    /// Code pages in which to search for literals too, such as "windows-1251,koi8-r".
    std::string encodings = {};
    /// Built-in scanners, such as "email,iban". They are numbered after the patterns.
    std::string features = {};
    /// Whether to ignore case.
    bool ignore_case = false;
    /// Whether to search for literals as UTF-16LE, UTF-16BE, under XOR with one byte, within base64, too.
    bool utf16 = false;
    bool utf16be = false;
    bool xored = false;
    bool base64 = false;
    /// Whether to report only whole words.
    bool word = false;
    /// Stops the search; may be nullptr.
    const Stop *stop = nullptr;
};

/// A finding. Its views are valid until the callback returns.
struct Finding {
    /// The name of the source.
    std::string_view source;
    /// The offset of the match in the source.
    std::uint64_t offset;
    /// The length of the match in bytes.
    std::uint64_t length;
    /// The number of the pattern, from 0, in the order in which patterns were given.
    std::size_t pattern;
    /// The name of the pattern, or the pattern as written.
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

/// Calls back with every occurrence of patterns in the source that a name refers to: a path, a folder, a
/// glob, an image, a URL. The callback gets a Finding and returns nothing, or false to end the search.
/// Findings arrive in the order of their offsets, one at a time, on any thread.
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

/// Like the overload above, in an open source.
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

/// Options of a carving run.
struct CarveOptions {
    /// The folder to write files into, new or empty; empty to write nothing.
    std::string folder = {};
    /// The types to carve, such as "jpg,png"; empty for all.
    std::string types = {};
    /// A file with signatures of more types.
    std::string signatures = {};
    /// The first offset to carve, and the offset after the last byte; 0 for the end of the source.
    std::uint64_t range_start = 0;
    std::uint64_t range_end = 0;
    /// Maximum length of a file in bytes; 0 for no limit.
    std::uint64_t file_bytes_max = 0;
    /// Maximum memory for reassembling files, in bytes; 0 for 1 GiB.
    std::uint64_t memory_bytes_max = 0;
    /// The number of threads; 0 for one per CPU.
    std::size_t workers = 0;
    /// Whether to resume the earlier run that the folder holds.
    bool resume = false;
    /// Whether to keep only valid files.
    bool valid_only = false;
    /// Whether to carve files inside archives, too.
    bool embedded = false;
    /// Whether to carve only space that file systems report as free.
    bool unallocated = false;
    /// Whether to search exhaustively for fragments.
    bool thorough = false;
    /// Whether to omit the SHA-256 of rows, which costs a read of all bytes.
    bool no_digests = false;
    /// Stops the run; may be nullptr.
    const Stop *stop = nullptr;
};

/// A carved file. Its views are valid until the callback returns.
struct CarvedFile {
    /// The name of the source.
    std::string_view source;
    /// The type of the file, such as "jpg".
    std::string_view kind;
    /// The offset of its first byte in the source; inside an archive, that of the archive.
    std::uint64_t offset;
    /// The length of the file in bytes.
    std::uint64_t length;
    /// The ranges of the source that hold its bytes; none inside an archive.
    Spans extents;
    /// "valid", "partial" or "header".
    std::string_view status;
    /// Why the file is not valid; empty if it is.
    std::string_view reason;
    /// The SHA-256 in hexadecimal, or empty.
    std::string_view sha256;
    /// The path of the file, relative to the folder; without a folder, the path it would have.
    std::string_view path;
    /// The path to it from the outermost archive, if it was in one.
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

/// Recovers files from the source that a name refers to: a path, an image, a URL. The callback gets a
/// CarvedFile and returns nothing, or false to end the run; a folder can then be resumed.
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

/// Like the overload above, from an open source.
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

/// Options of a filter.
struct FilterOptions {
    /// "ndjson", "fix", "nvfix", "csv" or "xml"; empty to detect the format of each source.
    std::string format = {};
    /// The columns of an Arrow stream, such as "side,qty"; empty for those of the first messages.
    std::string columns = {};
    /// The path of a file that lists rejected messages, one JSON object a line.
    std::string rejects = {};
    /// Maximum number of messages; 0 for no limit.
    std::uint64_t matches_max = 0;
    /// The number of threads; 0 for one per CPU.
    std::size_t workers = 0;
    /// Stops the run; may be nullptr.
    const Stop *stop = nullptr;
};

/// A message. Its views are valid until the callback returns.
struct Message {
    /// The name of the source.
    std::string_view source;
    /// The offset of the message, after decompression.
    std::uint64_t offset;
    /// The bytes of the message, without the line ending.
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

/// Calls back with the messages of the source that a name refers to for which an SQL-92 condition is true.
/// The callback gets a Message and returns nothing, or false to end the run.
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

/// Options for loading messages.
struct TableOptions {
    /// "ndjson", "fix", "nvfix", "csv", "xml" or "arrow"; empty to detect the format of each source.
    std::string format = {};
    /// The path of a QuickFIX data dictionary.
    std::string dictionary = {};
    /// The number of threads; 0 for one per CPU.
    std::size_t workers = 0;
    /// Whether to add a column _message with each message verbatim.
    bool keep_bytes = false;
    /// Stops the load; may be nullptr.
    const Stop *stop = nullptr;
};

/// Messages as columns, or the rows of an answer. A table never changes.
class Table {
public:
    /// Loads the messages of the source that a name refers to: a path, all files of a glob, a URL;
    /// compressed or not.
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

    /// Copies an Arrow stream into packed columns; takes over the stream and releases it.
    static Table import_stream(ArrowArrayStream *stream, const Stop *stop = nullptr) {
        quarrier_table *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_table_import(stream, detail::raw(stop), &made, &error), error);
        return Table(made);
    }

    /// Exports the rows as an Arrow stream, which the caller must release.
    void export_stream(ArrowArrayStream *stream) const {
        quarrier_error *error = nullptr;
        detail::check(quarrier_table_export(get(), stream, &error), error);
    }

    /// Answers a statement about the table, whose name in it is m.
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
        std::vector<Table> tables;
        tables.reserve(sqls.size());
        quarrier_error *error = nullptr;
        detail::check(quarrier_table_query_many(get(), given.data(), given.size(), detail::raw(stop),
                                                answers.data(), &error),
                      error);
        for (quarrier_table *answer : answers) {
            tables.push_back(Table(answer));
        }
        return tables;
    }

    /// The number of rows.
    std::uint64_t rows() const noexcept { return quarrier_table_rows(get()); }
    /// The number of columns.
    std::size_t columns() const noexcept { return quarrier_table_columns(get()); }
    /// The memory of the columns in bytes.
    std::size_t memory_bytes() const noexcept { return quarrier_table_memory_bytes(get()); }
    /// The number of messages that were rejected during loading, because they do not parse.
    std::uint64_t rejected() const noexcept { return quarrier_table_rejected(get()); }

    /// The object of the C interface.
    const quarrier_table *get() const noexcept { return table_.get(); }

private:
    explicit Table(quarrier_table *table) noexcept : table_(table) {}

    detail::Owned<quarrier_table> table_;
};

/// Zeroed memory that this process can share with others.
class SharedRegion {
public:
    /// Creates new memory.
    explicit SharedRegion(std::size_t length) {
        quarrier_shared_region *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_shared_region_new(length, &made, &error), error);
        region_.reset(made);
    }

    /// Wraps the memory of a file descriptor from another process.
    static SharedRegion of_fd(int fd, std::size_t length) {
        quarrier_shared_region *made = nullptr;
        quarrier_error *error = nullptr;
        detail::check(quarrier_shared_region_from_fd(fd, length, &made, &error), error);
        return SharedRegion(made);
    }

    /// A pointer to the first byte.
    void *data() const noexcept { return quarrier_shared_region_data(region_.get()); }
    /// The length of the region in bytes.
    std::size_t length() const noexcept { return quarrier_shared_region_length(region_.get()); }
    /// The file descriptor, which the region keeps.
    int fd() const noexcept { return quarrier_shared_region_fd(region_.get()); }

private:
    explicit SharedRegion(quarrier_shared_region *region) noexcept : region_(region) {}

    detail::Owned<quarrier_shared_region> region_;
};

} // namespace quarrier

#endif
