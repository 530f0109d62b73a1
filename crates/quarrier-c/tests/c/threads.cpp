// What the headers allow several threads to do, for ThreadSanitizer. With an argument: what they do not allow,
// which ThreadSanitizer must notice.
#define SVF_THREAD_SAFE
#define SVFS_THREAD_SAFE
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <thread>

#include <quarrier/svfs.hpp>

#define EXPECT(condition)                                                                            \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            std::cerr << "line " << __LINE__ << ": " #condition "\n";                                \
            std::exit(1);                                                                            \
        }                                                                                            \
    } while (0)

template <typename Work>
static void in_threads(std::uint64_t count, Work work) {
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < count; thread++) {
        threads.emplace_back([&work, thread] { work(thread); });
    }
    for (auto &thread : threads) {
        thread.join();
    }
}

static std::string block(std::uint64_t number) { return std::string(64, static_cast<char>('a' + number % 26)); }

static void files_of_a_store() {
    const quarrier::SparseStore store(1 << 20);
    in_threads(4, [&](std::uint64_t thread) {
        for (std::uint64_t step = 0; step < 500; step++) {
            const std::string id = std::to_string((step + thread) % 4);
            try {
                quarrier::SparseFile made{id};
                store.insert(made);
            } catch (const quarrier::DuplicateFileError &) {
            }
            try {
                auto file = store.get(id);
                const std::uint64_t number = step % 97;
                file.write(number * 64, block(number).data(), 64);
                std::string out(64, '\0');
                file.read(number * 64, out.data(), 64);
                EXPECT(out == block(number) && !file.blocks().empty());
            } catch (const quarrier::UnknownFileError &) {
            }
            if (step % 50 == thread) {
                try {
                    store.remove(id);
                } catch (const quarrier::UnknownFileError &) {
                }
                EXPECT(store.ids().size() <= 4 && store.num_bytes() <= 1 << 20);
            }
        }
    });
}

static void readers_of_objects() {
    quarrier::SparseFile file{"shared"};
    for (std::uint64_t number = 0; number < 97; number++) {
        file.write(number * 128, block(number).data(), 64);
    }
    std::ofstream("orders.csv") << "side,qty\nB,7\nS,8\nB,9\n";
    const auto table = quarrier::Table::load("orders.csv");
    const quarrier::Source source("orders.csv");
    const auto read = [&](const quarrier::SparseFile &shared, std::uint64_t thread) {
        for (std::uint64_t step = thread; step < 200; step++) {
            std::string out(64, '\0');
            shared.read(step % 97 * 128, out.data(), 64);
            EXPECT(out == block(step % 97) && shared.need(0, 97 * 128).size() == 97);
            EXPECT(shared.held_end() == 96 * 128 + 64 && shared.to_bytes().size() > 97 * 64);
        }
        std::string out(4, '\0');
        EXPECT(source.read(0, out.data(), 4) == 4 && out == "side");
        EXPECT(table.query("SELECT qty FROM m WHERE side = 'B'").rows() == 2);
    };
    in_threads(4, [&](std::uint64_t thread) { read(file, thread); });
}

static void searches_at_the_same_time(bool is_racy) {
    std::ofstream text("text");
    for (int line = 0; line < 100000; line++) {
        text << "a needle in line " << line << '\n';
    }
    text.close();
    std::uint64_t shared = 0;
    std::atomic<int> arrived{0};
    quarrier::Stop stop;
    in_threads(3, [&](std::uint64_t thread) {
        quarrier::SearchOptions options;
        options.workers = 3;
        std::vector<std::uint64_t> offsets;
        if (thread == 2) {
            options.stop = &stop;
            quarrier::search("text", "needle", [&](const quarrier::Finding &) { stop.request(); }, options);
            return;
        }
        quarrier::search(
            "text", "needle",
            [&](const quarrier::Finding &found) {
                offsets.push_back(found.offset);
                if (is_racy) {
                    // Both threads are here at once, at the first finding and at the last, but nothing
                    // orders them.
                    const bool is_last = offsets.size() == 100000;
                    if (offsets.size() == 1 || is_last) {
                        arrived.fetch_add(1, std::memory_order_relaxed);
                    }
                    const int awaited = is_last ? 4 : 2;
                    for (int tries = 0; tries < 10000 && arrived.load(std::memory_order_relaxed) < awaited; tries++) {
                        std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    }
                    shared++;
                }
            },
            options);
        EXPECT(offsets.size() == 100000);
    });
    EXPECT(stop.is_requested() && (shared > 0) == is_racy);
}

static void files_of_svfsc() {
    SVFS::SparseVirtualFile svf("shared", 0.0);
    SVFS::SparseVirtualFileSystem svfs;
    in_threads(4, [&](std::uint64_t thread) {
        const std::string own = std::to_string(thread);
        for (std::uint64_t step = 0; step < 300; step++) {
            const std::uint64_t number = (step + 13 * thread) % 97;
            svf.write(number * 128, block(number).data(), 64);
            std::string out(64, '\0');
            try {
                svf.read(number * 128, 64, out.data());
                EXPECT(out == block(number));
            } catch (const SVFS::Exceptions::ExceptionSparseVirtualFileRead &) {
                // Another thread punted the block.
            }
            EXPECT(svf.need(number * 128, 64).size() <= 1 && svf.num_blocks() <= 97);
            EXPECT(svf.last_file_position() <= 97 * 128 && svf.num_bytes() <= 97 * 64);
            EXPECT(svf.count_write() > step && svf.block_touch() > step && svf.bytes_read() % 64 == 0);
            if (step % 50 == 0) {
                svf.lru_punt(48 * 64);
                svfs.insert(own + "/" + std::to_string(step), 0.0);
                svfs.at(own + "/" + std::to_string(step)).write(step, "x", 1);
                EXPECT(svfs.has(own + "/0") && svfs.num_bytes() <= svfs.size() && !svfs.keys().empty());
            }
        }
        svfs.remove(own + "/0");
    });
    EXPECT(svfs.size() == 4 * 5);
}

int main(int argc, char **) {
    if (argc == 1) {
        files_of_a_store();
        readers_of_objects();
        files_of_svfsc();
    }
    searches_at_the_same_time(argc > 1);
    return 0;
}
