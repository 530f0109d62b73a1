// A program that runs out of memory in its own code: every call throws std::bad_alloc, leaks nothing, and leaves
// the object as it was or as the call should leave it.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <new>

#include <quarrier/svfs.hpp>

// How many allocations of C++ succeed; those of the library do not count.
static std::uint64_t allowed = UINT64_MAX;

// Not inlined, because gcc then takes their malloc and free for a mismatch.
__attribute__((noinline)) void *operator new(std::size_t bytes) {
    if (allowed == 0) {
        throw std::bad_alloc();
    }
    allowed -= allowed != UINT64_MAX;
    void *made = std::malloc(bytes > 0 ? bytes : 1);
    if (made == nullptr) {
        throw std::bad_alloc();
    }
    return made;
}
__attribute__((noinline)) void operator delete(void *made) noexcept { std::free(made); }
__attribute__((noinline)) void operator delete(void *made, std::size_t) noexcept { std::free(made); }

#define EXPECT(condition)                                                                            \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            allowed = UINT64_MAX;                                                                    \
            std::cerr << "line " << __LINE__ << ": " #condition "\n";                                \
            std::exit(1);                                                                            \
        }                                                                                            \
    } while (0)

// Runs a call with 0, 1, 2 … allocations until it succeeds; `check` must hold after each failure.
template <typename Call, typename Check>
static void fails_at_each(Call call, Check check) {
    for (std::uint64_t count = 0; count < 100000; count++) {
        allowed = count;
        try {
            call();
            allowed = UINT64_MAX;
            return;
        } catch (const std::bad_alloc &) {
            allowed = UINT64_MAX;
            check();
        }
    }
    EXPECT(false);
}

static void sparse_files() {
    const std::string name(100, 'n');
    quarrier::SparseFile file{name};
    for (std::uint64_t at = 0; at < 100; at++) {
        file.write(10 * at, "0123", 4);
    }
    const quarrier::Spans blocks = file.blocks();
    const auto is_same = [&] { EXPECT(file.blocks() == blocks && file.num_bytes() == 400); };
    fails_at_each([&] { EXPECT(file.need(0, 1000).size() == 100); }, is_same);
    fails_at_each([&] { EXPECT(file.need_many({{900, 10}, {0, 10}}).size() == 2); }, is_same);
    fails_at_each([&] { EXPECT(file.id() == name); }, is_same);
    std::string stored;
    fails_at_each([&] { stored = file.to_bytes(); }, is_same);
    fails_at_each([&] { quarrier::SparseFile::from_bytes(stored.data(), stored.size()); }, is_same);
    char out[8];
    fails_at_each([&] { file.read_many({{0, 4}, {990, 4}}, out, 8); }, is_same);
    fails_at_each(
        [&] {
            try {
                file.read(2, out, 8);
            } catch (const quarrier::NotHeldError &error) {
                EXPECT(error.span() == quarrier::Span(4, 6));
            }
        },
        is_same);
    fails_at_each(
        [&] {
            try {
                file.write(0, "0X", 2);
            } catch (const quarrier::ConflictError &error) {
                EXPECT(error.span().first == 1);
            }
        },
        is_same);
    fails_at_each([&] { file.write_many({{4, 2}, {14, 2}}, "4545", 4); },
                  [&] { EXPECT(file.num_bytes() == 400); });
    EXPECT(file.num_bytes() == 404);
}

static void stores() {
    quarrier::SparseStore store;
    for (int number = 0; number < 3; number++) {
        quarrier::SparseFile file{std::string(50, static_cast<char>('a' + number))};
        store.insert(file);
    }
    const auto is_same = [&] { EXPECT(store.num_files() == 3); };
    fails_at_each([&] { EXPECT(store.ids().size() == 3); }, is_same);
    std::string stored;
    fails_at_each([&] { stored = store.to_bytes(); }, is_same);
    fails_at_each([&] { quarrier::SparseStore::from_bytes(stored.data(), stored.size()); }, is_same);
    fails_at_each(
        [&] {
            try {
                store.get("none");
            } catch (const quarrier::UnknownFileError &) {
            }
        },
        is_same);
}

static void callbacks() {
    std::ofstream("image") << std::string(5000, 'x') << "one needle, two needles" << std::string(5000, 'x');
    const auto nothing = [] {};
    fails_at_each(
        [] {
            std::vector<std::string> found;
            const auto report = quarrier::search("image", "needle", [&](const quarrier::Finding &one) {
                found.push_back(std::string(50, 'f') + std::to_string(one.offset));
            });
            EXPECT(found.size() == 2 && report.rows == 2);
        },
        nothing);
    std::ofstream("orders.csv") << "side,qty\nB,7\nS,8\nB,9\n";
    fails_at_each(
        [] {
            std::vector<std::string> kept;
            quarrier::filter("orders.csv", "side = 'B'", [&](const quarrier::Message &message) {
                kept.emplace_back(std::string(message.bytes) + std::string(50, ' '));
            });
            EXPECT(kept.size() == 2);
        },
        nothing);
    fails_at_each(
        [] {
            const auto table = quarrier::Table::load("orders.csv");
            const auto many = table.query_many({"SELECT COUNT(*) FROM m", "SELECT * FROM m WHERE side = 'B'"});
            EXPECT(many.size() == 2 && many[1].rows() == 2);
        },
        nothing);
}

static void files_of_svfsc() {
    SVFS::SparseVirtualFile svf(std::string(50, 's'), 0.0);
    std::uint64_t written = 0;
    fails_at_each(
        [&] {
            for (; written < 50; written++) {
                svf.write(written * 10, "0123", 4);
            }
        },
        [&] { EXPECT(svf.has(written * 10, 4) || svf.need(written * 10, 4).size() == 1); });
    EXPECT(svf.num_bytes() == 200);
    char out[4];
    fails_at_each(
        [&] {
            try {
                svf.read(8, 4, out);
            } catch (const SVFS::Exceptions::ExceptionSparseVirtualFileRead &) {
                // Its message may be cut: streams swallow std::bad_alloc.
            }
        },
        [&] { EXPECT(svf.num_bytes() == 200); });
}

int main() {
    sparse_files();
    stores();
    callbacks();
    files_of_svfsc();
    return 0;
}
