// The measured calls on sparse files, with svfsc, or with quarrier (-DQUARRIER); see src/sparse_cases.rs.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#ifdef QUARRIER
#include <quarrier/svfs.hpp>
#else
#include "svf.h"
#endif

namespace {

constexpr uint64_t BYTES = 1 << 20;
constexpr int REPEATS = 5;
using Svf = SVFS::SparseVirtualFile;
using CallsAndSum = std::pair<uint64_t, uint64_t>;

void report(const char *name, uint64_t block, const std::function<CallsAndSum()> &run) {
    double least = std::numeric_limits<double>::infinity();
    CallsAndSum last;
    for (int i = 0; i < REPEATS; ++i) {
        auto start = std::chrono::steady_clock::now();
        last = run();
        std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        least = std::min(least, took.count());
    }
    std::printf("%s\t%llu\t%llu\t%.9g\t%llu\n", name, (unsigned long long)block,
                (unsigned long long)last.first, least, (unsigned long long)last.second);
}

void fill(Svf &file, uint64_t block, uint64_t step) {
    std::vector<char> data(block);
    for (uint64_t offset = 0; offset < BYTES; offset += step) {
        for (uint64_t i = 0; i < block; ++i) data[i] = char(uint8_t((offset + i) * 7 % 251));
        file.write(offset, data.data(), block);
    }
}

CallsAndSum reads(Svf &file, uint64_t block, uint64_t step) {
    std::vector<char> buffer(block);
    uint64_t calls = 0, sum = 0;
    for (uint64_t offset = 0; offset < BYTES; offset += step) {
        file.read(offset, block, buffer.data());
        sum += uint8_t(buffer.front()) + uint64_t(uint8_t(buffer.back()));
        ++calls;
    }
    return {calls, sum};
}

CallsAndSum writes(uint64_t block, uint64_t step) {
    std::vector<char> data(block, 'x');
    Svf file("bench", 0.0);
    uint64_t calls = 0;
    for (uint64_t offset = 0; offset < BYTES; offset += step) {
        file.write(offset, data.data(), block);
        ++calls;
    }
    return {calls, file.num_bytes() + file.num_blocks()};
}

CallsAndSum writes_descending(uint64_t block) {
    std::vector<char> data(block, 'x');
    Svf file("bench", 0.0);
    uint64_t calls = BYTES / 4 / block;
    for (uint64_t call = calls; call-- > 0;) file.write(call * block, data.data(), block);
    return {calls, file.num_bytes() + file.num_blocks()};
}

}  // namespace

int main() {
    for (uint64_t block : {1, 64, 512}) {
        Svf apart("bench", 0.0);
        fill(apart, block, 2 * block);
        report("read apart", block, [&] { return reads(apart, block, 2 * block); });
    }
    Svf joined("bench", 0.0);
    fill(joined, 1, 1);
    for (uint64_t block : {1, 64, 512}) {
        report("read joined", block, [&] { return reads(joined, block, block); });
    }
    report("has joined", 1, [&]() -> CallsAndSum {
        uint64_t sum = 0;
        for (uint64_t offset = 0; offset < BYTES; ++offset) sum += joined.has(offset, 1);
        return {BYTES, sum};
    });
    report("need nothing", 1, [&]() -> CallsAndSum {
        uint64_t sum = 0;
        for (uint64_t offset = 0; offset < BYTES; ++offset) sum += joined.need(offset, 1).size();
        return {BYTES, sum};
    });
    for (uint64_t block : {1, 64}) {
        Svf apart("bench", 0.0);
        fill(apart, block, 2 * block);
        report("need 1 MiB, apart", block, [&]() -> CallsAndSum {
            uint64_t sum = 0;
            for (const auto &need : apart.need(0, BYTES)) sum += need.first + need.second;
            return {1, sum};
        });
    }
    for (uint64_t block : {1, 8, 64, 512}) {
        report("write joined", block, [=] { return writes(block, block); });
        report("write apart", block, [=] { return writes(block, 2 * block); });
    }
    for (uint64_t block : {64, 512}) {
        report("write descending", block, [=] { return writes_descending(block); });
    }
    return 0;
}
