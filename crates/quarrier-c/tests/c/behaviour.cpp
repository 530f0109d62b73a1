// The guarantees of the C++ interface besides results: exceptions, callbacks that stop or throw, threads,
// forks.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <quarrier.hpp>

#define EXPECT(condition)                                                                            \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            std::cerr << "line " << __LINE__ << ": " #condition "\n";                                \
            std::exit(1);                                                                            \
        }                                                                                            \
    } while (0)

template <typename Expected, typename Call>
std::string thrown(Call call) {
    try {
        call();
    } catch (const Expected &error) {
        return error.what();
    }
    return "";
}

static void sparse_errors() {
    quarrier::SparseOptions options;
    options.length = 100;
    options.modified = 12.5;
    options.etag = "\"x\"";
    quarrier::SparseFile file{"a file", options};
    EXPECT(file.id() == "a file" && file.length() == 100u && file.modified() == 12.5);
    EXPECT(file.write(10, "0123456789", 10) == 10 && file.write(15, "56789AB", 7) == 2);
    EXPECT(file.blocks() == (quarrier::Spans{{10, 12}}));
    EXPECT(!thrown<quarrier::BeyondLengthError>([&] { file.write(95, "0123456789", 10); }).empty());
    EXPECT(!thrown<quarrier::OverflowError>([&] { file.need(1, UINT64_MAX); }).empty());
    char out[4];
    try {
        file.read(20, out, 4);
        EXPECT(false);
    } catch (const quarrier::NotHeldError &error) {
        EXPECT(error.span() == quarrier::Span(22, 2) && error.status() == QUARRIER_STATUS_NOT_HELD);
    }
    try {
        file.write(10, "0123X5", 6);
        EXPECT(false);
    } catch (const quarrier::ConflictError &error) {
        EXPECT(error.span().first == 14 && error.held() == '4' && error.given() == 'X');
    }
    file.pin(10, 2);
    EXPECT(!thrown<quarrier::PinnedError>([&] { file.erase(0, 100); }).empty());
    file.unpin(10, 2);
    EXPECT(!thrown<quarrier::PinnedError>([&] { file.unpin(10, 2); }).empty());
    const std::string stored = file.to_bytes();
    EXPECT(quarrier::SparseFile::from_bytes(stored.data(), stored.size()).blocks() == file.blocks());
    EXPECT(!thrown<quarrier::CorruptError>([&] {
                quarrier::SparseFile::from_bytes(stored.data(), stored.size() - 1);
            }).empty());
    EXPECT(file.counters().misses == 1 && file.erase(0, 100) == 12 && file.num_bytes() == 0);
    // Invalid arguments, through the C interface.
    quarrier_error *error = nullptr;
    EXPECT(quarrier_sparse_file_write(nullptr, 0, "x", 1, nullptr, &error) == QUARRIER_STATUS_ARGUMENT);
    EXPECT(std::strstr(quarrier_error_message(error), "file") != nullptr);
    quarrier_error_free(error);
    EXPECT(quarrier_sparse_file_write(file.get(), 0, nullptr, 1, nullptr, nullptr) == QUARRIER_STATUS_ARGUMENT);
    EXPECT(quarrier_sparse_file_write(file.get(), 0, nullptr, 0, nullptr, nullptr) == QUARRIER_STATUS_OK);
    EXPECT(quarrier_sparse_file_write(file.get(), 0, "x", SIZE_MAX, nullptr, nullptr) ==
           QUARRIER_STATUS_ARGUMENT);
    quarrier_sparse_options unset{};
    quarrier_sparse_file *made = nullptr;
    EXPECT(quarrier_sparse_file_new("x", &unset, &made, nullptr) == QUARRIER_STATUS_ARGUMENT);
    EXPECT(quarrier_sparse_file_new("\xff", nullptr, &made, nullptr) == QUARRIER_STATUS_ARGUMENT);
    EXPECT(made == nullptr && quarrier_sparse_file_has(nullptr, 0, 1) == false);
    quarrier_sparse_file_free(nullptr);
}

static void many_ranges() {
    quarrier::SparseFile file{"many"};
    for (std::uint64_t at = 0; at < 100; at++) {
        file.write(10 * at, "0123", 4);
    }
    EXPECT(file.need(0, 1000).size() == 100 && file.blocks().size() == 100);
    EXPECT(file.need_many({{900, 10}, {0, 10}, {5, 1}}) == (quarrier::Spans{{4, 6}, {904, 6}}));
    EXPECT(file.need_many({{0, 1000}}, quarrier::CostModel{}).size() == 1);
    char out[8];
    file.read_many({{0, 4}, {990, 4}}, out, 8);
    EXPECT(std::memcmp(out, "01230123", 8) == 0);
    EXPECT(!thrown<quarrier::ArgumentError>([&] { file.read_many({{0, 4}}, out, 8); }).empty());
    EXPECT(file.write_many({{4, 2}, {14, 2}}, "4545", 4) == 4 && file.has(10, 6));
    quarrier::ReadAhead ahead;
    EXPECT(ahead.plan(file, 0, 4).empty() && ahead.plan(file, 0, 8).size() == 1);
    ahead.observe(1 << 20, 0.02, 0.1);
    EXPECT(ahead.reach_bytes() > 0);
}

// Sizes from callers are checked before anything is allocated or read.
static void huge_sizes() {
    quarrier::SparseFile file{"huge"};
    file.write(0, "0123", 4);
    char out[8];
    const std::uint64_t huge = std::uint64_t{1} << 62;
    EXPECT(!thrown<quarrier::ArgumentError>([&] { file.read(0, out, SIZE_MAX); }).empty());
    EXPECT(!thrown<quarrier::Error>([&] { file.read_many({{0, huge}, {0, huge}}, out, 8); }).empty());
    EXPECT(!thrown<quarrier::Error>([&] { file.write_many({{0, huge}, {huge, huge}}, out, 8); }).empty());
    EXPECT(!thrown<quarrier::Error>([&] { file.read_many({{0, UINT64_MAX}, {0, 9}}, out, 8); }).empty());
    EXPECT(file.need_many({{0, UINT64_MAX}}) == (quarrier::Spans{{4, UINT64_MAX - 4}}));
    EXPECT(file.num_bytes() == 4 && file.held_end() == 4);
    EXPECT(!thrown<quarrier::Error>([] { quarrier::SharedRegion region(SIZE_MAX / 2); }).empty());
    EXPECT(!thrown<quarrier::Error>([] { quarrier::SharedRegion region(SIZE_MAX); }).empty());
    EXPECT(!thrown<quarrier::ArgumentError>([&] { quarrier::Source::of_memory("x", out, SIZE_MAX); }).empty());
}

static void threads_in_a_store() {
    quarrier::SparseStore store(1 << 20);
    for (int name = 0; name < 4; name++) {
        quarrier::SparseFile file{std::to_string(name)};
        store.insert(file);
    }
    quarrier::SparseFile twice{"0"};
    EXPECT(!thrown<quarrier::DuplicateFileError>([&] { store.insert(twice); }).empty());
    EXPECT(!thrown<quarrier::UnknownFileError>([&] { store.get("none"); }).empty());
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int worker = 0; worker < 4; worker++) {
        threads.emplace_back([&, worker] {
            char data[64];
            for (std::uint64_t step = 0; step < 2000; step++) {
                auto file = store.get(std::to_string((step + static_cast<std::uint64_t>(worker)) % 4));
                const std::uint64_t offset = step % 97 * 64;
                std::memset(data, static_cast<char>('a' + step % 97 % 26), sizeof data);
                file.write(offset, data, sizeof data);
                char out[64];
                file.read(offset, out, sizeof out);
                wrong += std::memcmp(data, out, sizeof out) != 0;
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT(wrong == 0 && store.num_bytes() <= 1 << 20 && store.ids().size() == 4);
    const std::string stored = store.to_bytes();
    EXPECT(quarrier::SparseStore::from_bytes(stored.data(), stored.size()).num_files() == 4);
}

static void searches() {
    std::ofstream("image") << "one needle, two needles";
    std::vector<std::uint64_t> offsets;
    const auto take = [&](const quarrier::Finding &found) { offsets.push_back(found.offset); };
    auto report = quarrier::search("image", {"needle", quarrier::hex("6F 6E 65").named("one")}, take);
    EXPECT(offsets == (std::vector<std::uint64_t>{0, 4, 16}) && report.rows == 3 && !report.is_stopped);
    EXPECT(report.bytes == 23 && report.unreadable.empty());
    report = quarrier::search("image", "needle", [](const quarrier::Finding &) { return false; });
    EXPECT(report.is_stopped && report.rows == 1);
    EXPECT(thrown<std::logic_error>([] {
               quarrier::search("image", "needle",
                                [](const quarrier::Finding &) { throw std::logic_error("mine"); });
           }) == "mine");
    EXPECT(!thrown<quarrier::NotFoundError>([&] { quarrier::search("missing", "x", take); }).empty());
    EXPECT(!thrown<quarrier::PatternError>([&] { quarrier::search("image", quarrier::regex("("), take); }).empty());
    std::ofstream("packed") << "LZIP\x01,a\nneedle,1\n";
    report = quarrier::search("packed", "needle", take);
    EXPECT(report.notices.size() == 1 && report.notices[0].find("packed: is compressed by lzip") == 0);
    const quarrier::Source packed("packed");
    EXPECT(packed.notice() == report.notices[0]);
    EXPECT(quarrier::search(packed, "needle", take).notices == report.notices);
    const auto carved =
        quarrier::carve("packed", quarrier::CarveOptions(), [](const quarrier::CarvedFile &) {});
    EXPECT(carved.notices == report.notices);
    quarrier::FilterOptions csv;
    csv.format = "csv";
    const auto filtered =
        quarrier::filter("packed", "a = 1", [](const quarrier::Message &) {}, csv);
    EXPECT(filtered.rows == 1 && filtered.notices == report.notices);
    EXPECT(quarrier::search("image", "needle", take).notices.empty());
    quarrier::Stop stop;
    stop.request();
    quarrier::SearchOptions options;
    options.stop = &stop;
    EXPECT(quarrier::search("image", "needle", take, options).is_stopped);
    const char memory[] = "a needle in memory";
    const auto source = quarrier::Source::of_memory("memory", memory, sizeof memory - 1);
    offsets.clear();
    quarrier::search(source, std::vector<std::string>{"needle"}, take);
    EXPECT(offsets == (std::vector<std::uint64_t>{2}));
    char out[8];
    EXPECT(source.length() == 18 && source.read(10, out, 8) == 8 && source.read(18, out, 8) == 0);
    source.read_many({{2, 6}, {0, 1}}, out, 7);
    EXPECT(std::memcmp(out, "needlea", 7) == 0);
    EXPECT(!thrown<quarrier::BeyondLengthError>([&] { source.read_many({{17, 2}}, out, 2); }).empty());
    quarrier::CarveOptions carving;
    std::uint64_t files = 0;
    quarrier::carve(source, carving, [&](const quarrier::CarvedFile &) { files++; });
    EXPECT(files == 0);
}

static void tables() {
    std::ofstream("orders.csv") << "side,qty\nB,7\nS,8\nB,9\n";
    const auto table = quarrier::Table::load("orders.csv");
    EXPECT(table.rows() == 3 && table.columns() == 2 && table.memory_bytes() > 0);
    const auto many = table.query_many({"SELECT COUNT(*) FROM m", "SELECT * FROM m WHERE side = 'B'"});
    EXPECT(many.size() == 2 && many[1].rows() == 2);
    EXPECT(!thrown<quarrier::QueryError>([&] { table.query("SELECT"); }).empty());
    ArrowArrayStream stream;
    table.export_stream(&stream);
    const auto again = quarrier::Table::import_stream(&stream);
    EXPECT(again.rows() == 3 && stream.release == nullptr);
    EXPECT(quarrier::filter("orders.csv", "qty > 7", [](const quarrier::Message &) { return false; }).is_stopped);
    EXPECT(!thrown<quarrier::QueryError>([] {
                quarrier::filter("orders.csv", "qty >", [](const quarrier::Message &) {});
            }).empty());
}

static void shared_with_a_child() {
    quarrier::SharedRegion region(4096);
    quarrier::SparseFile file{"of the parent"};
    file.write(0, "abc", 3);
    std::memcpy(region.data(), "old", 4);
    const pid_t child = fork();
    if (child == 0) {
        char out[3];
        file.read(0, out, 3);
        file.write(3, "def", 3);
        std::memcpy(region.data(), std::memcmp(out, "abc", 3) == 0 ? "new" : "bad", 4);
        _exit(file.num_bytes() == 6 ? 0 : 1);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT(std::strcmp(static_cast<const char *>(region.data()), "new") == 0 && file.num_bytes() == 3);
    EXPECT(quarrier::SharedRegion::of_fd(region.fd(), 4096).length() == 4096);
    EXPECT(!thrown<quarrier::ArgumentError>([] { quarrier::SharedRegion::of_fd(-1, 1); }).empty());
}

int main() {
    EXPECT(quarrier::version() == QUARRIER_VERSION);
    sparse_errors();
    many_ranges();
    huge_sizes();
    threads_in_a_store();
    searches();
    tables();
    shared_with_a_child();
    return 0;
}
