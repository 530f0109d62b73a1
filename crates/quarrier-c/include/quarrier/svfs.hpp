// For code written for the C++ library svfsc 0.4.1: its namespace SVFS on top of quarrier's sparse files.
// Include this in place of svf.h, svfs.h and cpp_svfs.h; nothing else changes.
//
// Names, arguments, results and messages are those of svfsc. This header differs where svfsc breaks its own
// promises: blocks that touch are joined in any order of writes, a write that differs from the bytes held
// loses nothing and names the first byte that differs, a write of no bytes creates no block, and a range
// that extends past 2^64 is not held, and cannot be read or written. size_of() returns the actual memory,
// exceptions have what(), and counts are read with the lock.
//
// New code should use quarrier::SparseFile and quarrier::SparseStore.
#ifndef QUARRIER_SVFS_HPP
#define QUARRIER_SVFS_HPP

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#if defined(SVF_THREAD_SAFE) || defined(SVFS_THREAD_SAFE)
#include <mutex>
#endif

#include "../quarrier.hpp"

/// The version of svfsc that this replaces.
inline const char *SVFS_CPP_VERSION = "0.4.1";
inline int SVFS_CPP_VERSION_MAJOR = 0;
inline int SVFS_CPP_VERSION_MINOR = 4;
inline int SVFS_CPP_VERSION_PATCH = 1;
inline const char *SVFS_CPP_VERSION_SUFFIX = "";

namespace SVFS {

namespace Exceptions {

/// The base class of errors of a file.
class ExceptionSparseVirtualFile : public std::exception {
public:
    explicit ExceptionSparseVirtualFile(const std::string &in_msg) : msg(in_msg) {}

    [[nodiscard]] const std::string &message() const { return msg; }
    [[nodiscard]] const char *what() const noexcept override { return msg.c_str(); }

protected:
    std::string msg;
};

/// A write failed.
class ExceptionSparseVirtualFileWrite : public ExceptionSparseVirtualFile {
public:
    using ExceptionSparseVirtualFile::ExceptionSparseVirtualFile;
};

/// A write differs from the bytes held.
class ExceptionSparseVirtualFileDiff : public ExceptionSparseVirtualFileWrite {
public:
    using ExceptionSparseVirtualFileWrite::ExceptionSparseVirtualFileWrite;
};

/// A byte to be read is missing.
class ExceptionSparseVirtualFileRead : public ExceptionSparseVirtualFile {
public:
    using ExceptionSparseVirtualFile::ExceptionSparseVirtualFile;
};

/// No block begins where one was to be erased.
class ExceptionSparseVirtualFileErase : public ExceptionSparseVirtualFile {
public:
    using ExceptionSparseVirtualFile::ExceptionSparseVirtualFile;
};

/// The base class of errors of a system of files.
class ExceptionSparseVirtualFileSystem : public std::exception {
public:
    explicit ExceptionSparseVirtualFileSystem(const std::string &in_msg) : msg(in_msg) {}

    [[nodiscard]] const std::string &message() const { return msg; }
    [[nodiscard]] const char *what() const noexcept override { return msg.c_str(); }

protected:
    std::string msg;
};

/// No file has this ID.
class ExceptionSparseVirtualFileSystemOutOfRange : public ExceptionSparseVirtualFileSystem {
public:
    using ExceptionSparseVirtualFileSystem::ExceptionSparseVirtualFileSystem;
};

/// A file has this ID already.
class ExceptionSparseVirtualFileSystemInsert : public ExceptionSparseVirtualFileSystem {
public:
    using ExceptionSparseVirtualFileSystem::ExceptionSparseVirtualFileSystem;
};

/// No file has this ID, so none can be removed.
class ExceptionSparseVirtualFileSystemRemove : public ExceptionSparseVirtualFileSystem {
public:
    using ExceptionSparseVirtualFileSystem::ExceptionSparseVirtualFileSystem;
};

} // namespace Exceptions

typedef std::size_t t_fpos;
typedef std::pair<t_fpos, std::size_t> t_seek_read;
typedef std::vector<t_seek_read> t_seek_reads;
typedef std::uint32_t t_block_touch;
typedef std::map<t_block_touch, t_fpos> t_block_touches;

/// The behaviour of a file.
typedef struct SparseVirtualFileConfig {
    /// Whether to overwrite memory before freeing it.
    bool overwrite_on_exit = false;
    /// Whether a write that differs from the bytes held is an error.
    bool compare_for_diff = true;
} tSparseVirtualFileConfig;

#ifdef SVF_THREAD_SAFE
#define QUARRIER_SVF_LOCK const std::lock_guard<std::mutex> lock(m_mutex)
#else
#define QUARRIER_SVF_LOCK static_cast<void>(0)
#endif

/// A sparse virtual file: fragments of a real file, by offset.
class SparseVirtualFile {
public:
    explicit SparseVirtualFile(const std::string &id, double mod_time,
                               const tSparseVirtualFileConfig &config = tSparseVirtualFileConfig())
        : m_id(id), m_file_mod_time(mod_time), m_config(config), m_file(id, options(mod_time, config)) {}

    SparseVirtualFile(const SparseVirtualFile &) = delete;
    SparseVirtualFile operator=(const SparseVirtualFile &) = delete;
#ifdef SVF_THREAD_SAFE
    SparseVirtualFile(SparseVirtualFile &&) = delete;
    SparseVirtualFile &operator=(SparseVirtualFile &&) = delete;
#else
    SparseVirtualFile(SparseVirtualFile &&) = default;
    SparseVirtualFile &operator=(SparseVirtualFile &&) = default;
#endif
    ~SparseVirtualFile() = default;

    // Reading and writing bytes.

    /// Returns whether all of the range is held.
    [[nodiscard]] bool has(t_fpos fpos, std::size_t len) const noexcept {
        QUARRIER_SVF_LOCK;
        return len == 0 ? is_in_block(fpos) : m_file.has(fpos, len);
    }

    /// Writes bytes; throws ExceptionSparseVirtualFileDiff if a byte differs and differences are
    /// compared.
    void write(t_fpos fpos, const char *data, std::size_t len) {
        QUARRIER_SVF_LOCK;
        std::size_t kept = 0;
        if (!m_config.compare_for_diff) {
            // svfsc keeps the bytes of the block in which a write begins.
            kept = std::min(held_from(fpos), len);
        }
        try {
            m_file.write(fpos + kept, data + kept, len - kept);
        } catch (const quarrier::ConflictError &error) {
            std::ostringstream os;
            os << "SparseVirtualFile::write(): Difference at position " << error.span().first << " '"
               << static_cast<char>(error.given()) << "' != '" << static_cast<char>(error.held())
               << "' Ordinal " << static_cast<int>(static_cast<char>(error.given())) << " != "
               << static_cast<int>(static_cast<char>(error.held()));
            throw Exceptions::ExceptionSparseVirtualFileDiff(os.str());
        } catch (const quarrier::Error &error) {
            throw Exceptions::ExceptionSparseVirtualFileWrite(
                std::string("SparseVirtualFile::write(): ") + error.what());
        }
        if (len > 0) {
            touch(fpos);
        }
        m_count_write += 1;
        m_bytes_write += len;
        m_time_write = std::chrono::system_clock::now();
    }

    /// Reads bytes; throws ExceptionSparseVirtualFileRead if one is missing.
    void read(t_fpos fpos, std::size_t len, char *p) {
        QUARRIER_SVF_LOCK;
        quarrier_status status = QUARRIER_STATUS_OK;
        if (len > 0) {
            status = quarrier_sparse_file_read(m_file.get(), fpos, p, len, nullptr);
        } else if (!is_in_block(fpos)) {
            status = QUARRIER_STATUS_NOT_HELD;
        }
        if (status != QUARRIER_STATUS_OK) {
            throw Exceptions::ExceptionSparseVirtualFileRead(why_not(fpos, len));
        }
        touch(fpos);
        m_count_read += 1;
        m_bytes_read += len;
        m_time_read = std::chrono::system_clock::now();
    }

    /// The missing parts of the range.
    [[nodiscard]] t_seek_reads need(t_fpos fpos, std::size_t len,
                                    std::size_t greedy_length = 0) const noexcept {
        QUARRIER_SVF_LOCK;
        return need_of(fpos, len, greedy_length);
    }

    /// The missing parts of many ranges, which are sorted in place.
    [[nodiscard]] t_seek_reads need_many(t_seek_reads &seek_reads,
                                         std::size_t greedy_length = 0) const noexcept {
        QUARRIER_SVF_LOCK;
        std::sort(seek_reads.begin(), seek_reads.end());
        if (m_file.num_bytes() == 0) {
            return merged(seek_reads, greedy_length);
        }
        t_seek_reads missing;
        for (const auto &wanted : seek_reads) {
            for (const auto &range : need_of(wanted.first, wanted.second, 0)) {
                missing.push_back(range);
            }
        }
        return merged(missing, greedy_length);
    }

    /// Erases everything, and resets the counts.
    void clear() noexcept {
        QUARRIER_SVF_LOCK;
        m_file.clear();
        m_touches.clear();
        m_touch = 0;
        m_count_write = m_count_read = m_bytes_write = m_bytes_read = 0;
        m_blocks_erased = m_bytes_erased = m_blocks_punted = m_bytes_punted = 0;
        m_time_write = m_time_read = never();
    }

    /// Erases the block that begins here, and returns its length; throws ExceptionSparseVirtualFileErase if
    /// no block does.
    std::size_t erase(t_fpos fpos) {
        QUARRIER_SVF_LOCK;
        return erase_block(fpos);
    }

    /// Erases the least recently used blocks, except one, until fewer bytes are held.
    std::size_t lru_punt(std::size_t cache_size_upper_bound) {
        QUARRIER_SVF_LOCK;
        std::size_t removed = 0;
        for (const auto &block : by_touch()) {
            if (m_file.num_blocks() <= 1 || m_file.num_bytes() < cache_size_upper_bound) {
                break;
            }
            removed += erase_block(block.second);
            m_blocks_punted += 1;
        }
        m_bytes_punted += removed;
        return removed;
    }

    // The bytes held.

    [[nodiscard]] t_seek_reads blocks() const noexcept {
        QUARRIER_SVF_LOCK;
        return converted(m_file.blocks());
    }

    /// The length of the block that begins here; throws ExceptionSparseVirtualFileRead if no block
    /// does.
    std::size_t block_size(t_fpos fpos) const {
        QUARRIER_SVF_LOCK;
        const std::size_t length = block_at(fpos);
        if (m_file.num_bytes() == 0) {
            throw Exceptions::ExceptionSparseVirtualFileRead(
                "SparseVirtualFile::block_size(): Sparse virtual file is empty.");
        }
        if (length == 0) {
            std::ostringstream os;
            os << "SparseVirtualFile::block_size(): Requested file position " << fpos
               << " is not at the start of a block";
            throw Exceptions::ExceptionSparseVirtualFileRead(os.str());
        }
        return length;
    }

    [[nodiscard]] std::size_t size_of() const noexcept {
        QUARRIER_SVF_LOCK;
        return sizeof(SparseVirtualFile) + m_id.size() + m_file.memory_bytes();
    }
    [[nodiscard]] std::size_t num_bytes() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_file.num_bytes();
    }
    [[nodiscard]] std::size_t num_blocks() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_file.num_blocks();
    }

    /// The position after the last byte.
    [[nodiscard]] t_fpos last_file_position() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_file.held_end();
    }

    /// The value of the next touch.
    [[nodiscard]] t_block_touch block_touch() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_touch;
    }

    /// The latest touch of each block, and the start of the block.
    [[nodiscard]] t_block_touches block_touches() const noexcept {
        QUARRIER_SVF_LOCK;
        return by_touch();
    }

    // Settings and counts.

    [[nodiscard]] bool file_mod_time_matches(const double &file_mod_time) const noexcept {
        return !(file_mod_time < m_file_mod_time) && !(file_mod_time > m_file_mod_time);
    }
    [[nodiscard]] const std::string &id() const noexcept { return m_id; }
    [[nodiscard]] double file_mod_time() const noexcept { return m_file_mod_time; }
    [[nodiscard]] const tSparseVirtualFileConfig &config() const noexcept { return m_config; }
    [[nodiscard]] std::size_t count_write() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_count_write;
    }
    [[nodiscard]] std::size_t count_read() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_count_read;
    }
    [[nodiscard]] std::size_t bytes_write() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_bytes_write;
    }
    [[nodiscard]] std::size_t bytes_read() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_bytes_read;
    }
    [[nodiscard]] std::size_t blocks_erased() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_blocks_erased;
    }
    [[nodiscard]] std::size_t bytes_erased() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_bytes_erased;
    }
    [[nodiscard]] std::size_t blocks_punted() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_blocks_punted;
    }
    [[nodiscard]] std::size_t bytes_punted() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_bytes_punted;
    }
    [[nodiscard]] std::chrono::time_point<std::chrono::system_clock> time_write() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_time_write;
    }
    [[nodiscard]] std::chrono::time_point<std::chrono::system_clock> time_read() const noexcept {
        QUARRIER_SVF_LOCK;
        return m_time_read;
    }

private:
    using Time = std::chrono::time_point<std::chrono::system_clock>;

    static Time never() noexcept { return (Time::min)(); }

    static quarrier::SparseOptions options(double mod_time, const tSparseVirtualFileConfig &config) {
        quarrier::SparseOptions options;
        options.modified = mod_time;
        options.replaces = !config.compare_for_diff;
        options.wipes = config.overwrite_on_exit;
        return options;
    }

    static t_seek_reads converted(const quarrier::Spans &spans) {
        return t_seek_reads(spans.begin(), spans.end());
    }

    /// The ranges, each extended to at least `greedy` bytes, and joined with those that it then covers
    /// or touches.
    static t_seek_reads merged(const t_seek_reads &ranges, std::size_t greedy) {
        t_seek_reads requests;
        for (const auto &range : ranges) {
            if (requests.empty() || range.first > requests.back().first + requests.back().second) {
                requests.emplace_back(range.first, std::max(range.second, greedy));
            } else {
                auto &last = requests.back();
                const t_fpos end = std::max(last.first + last.second, range.first + range.second);
                last.second = end - last.first;
            }
        }
        return requests;
    }

    t_seek_reads need_of(t_fpos fpos, std::size_t len, std::size_t greedy) const {
        // A range past the greatest offset is cut there.
        len = std::min(len, SIZE_MAX - fpos);
        if (m_file.num_bytes() == 0) {
            return {{fpos, std::max(greedy, len)}};
        }
        if (len == 0) {
            const bool precedes = fpos < m_file.blocks().front().first;
            return precedes ? merged({{fpos, 0}}, greedy) : t_seek_reads();
        }
        t_seek_reads missing = converted(m_file.need(fpos, len));
        return greedy > len && !missing.empty() ? merged(missing, greedy) : missing;
    }

    /// The number of bytes held from here on without a gap.
    std::size_t held_from(t_fpos fpos) const noexcept {
        if (!m_file.has(fpos, 1)) {
            return 0;
        }
        std::size_t known = 1;
        std::size_t step = 1;
        while (m_file.has(fpos, known + step)) {
            known += step;
            step *= 2;
        }
        for (; step > 0; step /= 2) {
            if (m_file.has(fpos, known + step)) {
                known += step;
            }
        }
        return known;
    }

    /// Whether a block contains this position, or ends at it.
    bool is_in_block(t_fpos fpos) const noexcept {
        return m_file.has(fpos, 1) || (fpos > 0 && m_file.has(fpos - 1, 1));
    }

    /// The length of the block that begins here, or 0.
    std::size_t block_at(t_fpos fpos) const noexcept {
        return fpos > 0 && m_file.has(fpos - 1, 1) ? 0 : held_from(fpos);
    }

    std::size_t erase_block(t_fpos fpos) {
        const std::size_t length = block_at(fpos);
        if (length == 0) {
            std::ostringstream os;
            os << "SparseVirtualFile::erase(): Non-existent file position " << fpos << " at start of block.";
            throw Exceptions::ExceptionSparseVirtualFileErase(os.str());
        }
        m_file.erase(fpos, length);
        m_blocks_erased += 1;
        m_bytes_erased += length;
        return length;
    }

    std::string why_not(t_fpos fpos, std::size_t len) const {
        const auto blocks = m_file.blocks();
        if (blocks.empty()) {
            return "SparseVirtualFile::read(): Sparse virtual file is empty.";
        }
        std::ostringstream os;
        os << "SparseVirtualFile::read(): Requested ";
        const auto after = std::upper_bound(blocks.begin(), blocks.end(), quarrier::Span(fpos, UINT64_MAX));
        if (after == blocks.begin()) {
            os << "file position " << fpos << " precedes first block at " << after->first;
            return os.str();
        }
        const auto &block = *std::prev(after);
        const auto into = fpos - block.first;
        os << "position " << fpos << " length " << len << " (end " << fpos + len
           << ") overruns block that starts at " << block.first << " has size " << block.second << " (end "
           << block.first + block.second << "). Offset into block is " << into << " overrun is "
           << into + len - block.second << " bytes";
        return os.str();
    }

    /// Records a use. Uses are stored by position, and assigned to blocks when they are queried, or when
    /// they far outnumber the blocks.
    void touch(t_fpos fpos) {
        m_touches.emplace_back(fpos, m_touch++);
        if (m_touches.size() > m_touches_max) {
            std::vector<std::pair<t_fpos, t_block_touch>> latest;
            for (const auto &block : by_touch()) {
                latest.emplace_back(block.second, block.first);
            }
            m_touches = std::move(latest);
            m_touches_max = 4096 + 2 * m_touches.size();
        }
    }

    t_block_touches by_touch() const {
        const auto blocks = m_file.blocks();
        std::vector<std::pair<bool, t_block_touch>> latest(blocks.size());
        for (const auto &touched : m_touches) {
            const quarrier::Span place(touched.first, UINT64_MAX);
            const auto after = std::upper_bound(blocks.begin(), blocks.end(), place);
            if (after == blocks.begin() || touched.first > std::prev(after)->first + std::prev(after)->second) {
                continue;
            }
            auto &known = latest[static_cast<std::size_t>(after - blocks.begin()) - 1];
            known = std::max(known, {true, touched.second});
        }
        t_block_touches touches;
        for (std::size_t i = 0; i < blocks.size(); i++) {
            if (latest[i].first) {
                touches[latest[i].second] = blocks[i].first;
            }
        }
        return touches;
    }

    std::string m_id;
    double m_file_mod_time;
    tSparseVirtualFileConfig m_config;
    quarrier::SparseFile m_file;
    /// Touched positions, in order; only the last one in a block counts.
    std::vector<std::pair<t_fpos, t_block_touch>> m_touches;
    std::size_t m_touches_max = 4096;
    t_block_touch m_touch = 0;
    std::size_t m_count_write = 0;
    std::size_t m_count_read = 0;
    std::size_t m_bytes_write = 0;
    std::size_t m_bytes_read = 0;
    std::size_t m_blocks_erased = 0;
    std::size_t m_bytes_erased = 0;
    std::size_t m_blocks_punted = 0;
    std::size_t m_bytes_punted = 0;
    Time m_time_write = never();
    Time m_time_read = never();
#ifdef SVF_THREAD_SAFE
    mutable std::mutex m_mutex;
#endif
};

#undef QUARRIER_SVF_LOCK
#ifdef SVFS_THREAD_SAFE
#define QUARRIER_SVFS_LOCK const std::lock_guard<std::mutex> lock(m_mutex)
#else
#define QUARRIER_SVFS_LOCK static_cast<void>(0)
#endif

/// A sparse virtual file system: sparse virtual files by their ID.
class SparseVirtualFileSystem {
public:
    explicit SparseVirtualFileSystem(const tSparseVirtualFileConfig &config = tSparseVirtualFileConfig())
        : m_config(config) {}

    SparseVirtualFileSystem(const SparseVirtualFileSystem &) = delete;
    SparseVirtualFileSystem operator=(const SparseVirtualFileSystem &) = delete;
    ~SparseVirtualFileSystem() noexcept = default;

    /// Creates a file; throws ExceptionSparseVirtualFileSystemInsert if one has this ID.
    void insert(const std::string &id, double mod_time) {
        QUARRIER_SVFS_LOCK;
        const auto made = m_svfs.emplace(std::piecewise_construct, std::forward_as_tuple(id),
                                         std::forward_as_tuple(id, mod_time, m_config));
        if (!made.second) {
            throw Exceptions::ExceptionSparseVirtualFileSystemInsert(
                "SparseVirtualFileSystem::insert(): can not insert \"" + id + "\"");
        }
    }

    /// Removes the file; throws ExceptionSparseVirtualFileSystemRemove if there is none.
    void remove(const std::string &id) {
        QUARRIER_SVFS_LOCK;
        if (m_svfs.erase(id) == 0) {
            throw Exceptions::ExceptionSparseVirtualFileSystemRemove(
                "SparseVirtualFileSystem::remove(): id \"" + id + "\" not found.");
        }
    }

    /// The file; throws ExceptionSparseVirtualFileSystemOutOfRange if there is none.
    [[nodiscard]] const SparseVirtualFile &at(const std::string &id) const {
        QUARRIER_SVFS_LOCK;
        const auto found = m_svfs.find(id);
        if (found == m_svfs.end()) {
            throw Exceptions::ExceptionSparseVirtualFileSystemOutOfRange("no file \"" + id + "\"");
        }
        return found->second;
    }

    /// The file; throws ExceptionSparseVirtualFileSystemOutOfRange if there is none.
    [[nodiscard]] SparseVirtualFile &at(const std::string &id) {
        QUARRIER_SVFS_LOCK;
        const auto found = m_svfs.find(id);
        if (found == m_svfs.end()) {
            throw Exceptions::ExceptionSparseVirtualFileSystemOutOfRange("no file \"" + id + "\"");
        }
        return found->second;
    }

    [[nodiscard]] bool has(const std::string &id) const noexcept {
        QUARRIER_SVFS_LOCK;
        return m_svfs.count(id) > 0;
    }
    [[nodiscard]] std::size_t size() const noexcept {
        QUARRIER_SVFS_LOCK;
        return m_svfs.size();
    }
    [[nodiscard]] std::size_t size_of() const noexcept {
        return sizeof(SparseVirtualFileSystem) + sum(&SparseVirtualFile::size_of);
    }
    [[nodiscard]] std::size_t num_bytes() const noexcept { return sum(&SparseVirtualFile::num_bytes); }
    [[nodiscard]] std::size_t num_blocks() const noexcept { return sum(&SparseVirtualFile::num_blocks); }

    /// The IDs of all files, in no particular order.
    [[nodiscard]] std::vector<std::string> keys() const noexcept {
        QUARRIER_SVFS_LOCK;
        std::vector<std::string> keys;
        keys.reserve(m_svfs.size());
        for (const auto &file : m_svfs) {
            keys.push_back(file.first);
        }
        return keys;
    }

    [[nodiscard]] const tSparseVirtualFileConfig &config() const noexcept { return m_config; }

private:
    std::size_t sum(std::size_t (SparseVirtualFile::*of)() const noexcept) const noexcept {
        QUARRIER_SVFS_LOCK;
        std::size_t sum = 0;
        for (const auto &file : m_svfs) {
            sum += (file.second.*of)();
        }
        return sum;
    }

    std::unordered_map<std::string, SparseVirtualFile> m_svfs;
    tSparseVirtualFileConfig m_config;
#ifdef SVFS_THREAD_SAFE
    mutable std::mutex m_mutex;
#endif
};

#undef QUARRIER_SVFS_LOCK

} // namespace SVFS

#endif
