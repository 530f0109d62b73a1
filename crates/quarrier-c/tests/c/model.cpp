// Random operations on the classes for C++ and on those of svfsc, each compared with a model: an array of
// bytes and one that marks those that are held. model SEED OPERATIONS
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>

#include <quarrier/svfs.hpp>

namespace {

constexpr std::uint64_t BYTES = 700;
constexpr std::uint64_t LONGEST = 60;
using quarrier::Span;
using quarrier::Spans;

std::uint64_t state;
unsigned long step;

std::uint64_t draw(std::uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 32) % below;
}

#define EXPECT(condition)                                                                            \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            std::cerr << "step " << step << ", line " << __LINE__ << ": " #condition "\n";           \
            std::exit(1);                                                                            \
        }                                                                                            \
    } while (0)

// The true byte of the file at an offset.
char truth(std::uint64_t offset) { return static_cast<char>(offset * 7 + offset / 13); }

std::string truths(std::uint64_t offset, std::uint64_t length) {
    std::string bytes;
    for (std::uint64_t at = offset; at < offset + length; at++) {
        bytes += truth(at);
    }
    return bytes;
}

struct Model {
    std::array<bool, BYTES> held{};

    bool has(Span span) const {
        for (std::uint64_t at = span.first; at < span.first + span.second; at++) {
            if (at >= BYTES || !held[at]) {
                return false;
            }
        }
        return true;
    }

    std::uint64_t count(Span span) const {
        std::uint64_t count = 0;
        for (std::uint64_t at = span.first; at < span.first + span.second; at++) {
            count += held[at];
        }
        return count;
    }

    void set(Span span, bool is_held) {
        for (std::uint64_t at = span.first; at < span.first + span.second; at++) {
            held[at] = is_held;
        }
    }

    // The runs of held, or missing, bytes within ranges.
    Spans runs(const Spans &within, bool wanted) const {
        std::array<bool, BYTES> is_within{};
        for (const Span &span : within) {
            for (std::uint64_t at = span.first; at < span.first + span.second; at++) {
                is_within[at] = true;
            }
        }
        Spans runs;
        for (std::uint64_t at = 0; at < BYTES; at++) {
            if (!is_within[at] || held[at] != wanted) {
                continue;
            }
            if (!runs.empty() && runs.back().first + runs.back().second == at) {
                runs.back().second++;
            } else {
                runs.emplace_back(at, 1);
            }
        }
        return runs;
    }

    Spans blocks() const { return runs({{0, BYTES}}, true); }
};

Span draw_span() { return {draw(BYTES - LONGEST), draw(LONGEST)}; }

Spans draw_spans() {
    Spans spans(1 + draw(6));
    for (Span &span : spans) {
        span = draw_span();
    }
    return spans;
}

// Requests for at least `greedy` bytes cover all missing ranges, and begin with a missing byte.
void check_greedy(const Spans &requests, const Spans &missing, std::uint64_t greedy) {
    std::size_t at = 0;
    std::uint64_t end = 0;
    for (const Span &request : requests) {
        EXPECT(request.second >= greedy && (end == 0 || request.first > end));
        EXPECT(at < missing.size() && missing[at].first == request.first);
        end = request.first + request.second;
        while (at < missing.size() && missing[at].first + missing[at].second <= end) {
            at++;
        }
    }
    EXPECT(at == missing.size());
}

// A file, alone or in a store, and its model.
class File {
public:
    void operate() {
        const Span span = draw_span();
        switch (draw(20)) {
        case 0: case 1: case 2: case 3: write(span); break;
        case 4: write_many(); break;
        case 5: case 6: case 7: read(span); break;
        case 8: read_many(); break;
        case 9: case 10: need(span); break;
        case 11: need_many(); break;
        case 12: case 13: case 14: erase({span.first, span.second / 3}); break;
        case 15: case 16: EXPECT(file_.has(span.first, span.second) == model_.has(span)); break;
        case 17: pin(span); break;
        case 18: check(); break;
        default: rarely(); break;
        }
    }

    void check() const {
        const Spans blocks = model_.blocks();
        EXPECT(file_.blocks() == blocks && file_.num_blocks() == blocks.size());
        EXPECT(file_.num_bytes() == model_.count({0, BYTES}));
        EXPECT(file_.held_end() == (blocks.empty() ? 0 : blocks.back().first + blocks.back().second));
    }

private:
    void write(Span span) {
        std::string data = truths(span.first, span.second);
        const std::uint64_t expected_new = span.second - model_.count(span);
        std::optional<std::uint64_t> wrong;
        if (span.second > 0 && draw(8) == 0) {
            const std::uint64_t at = draw(span.second);
            if (model_.held[span.first + at]) {
                wrong = at;
                data[at] = static_cast<char>(data[at] ^ 0x40);
            }
        }
        try {
            EXPECT(file_.write(span.first, data.data(), data.size()) == expected_new && !wrong);
            model_.set(span, true);
        } catch (const quarrier::ConflictError &error) {
            EXPECT(wrong && error.span().first == span.first + *wrong);
            EXPECT(static_cast<char>(error.held()) == truth(error.span().first));
            EXPECT(error.given() == (error.held() ^ 0x40));
        }
    }

    void write_many() {
        const Spans spans = draw_spans();
        std::string data;
        std::uint64_t expected_new = 0;
        for (const Span &span : spans) {
            data += truths(span.first, span.second);
            expected_new += span.second - model_.count(span);
            model_.set(span, true);
        }
        EXPECT(file_.write_many(spans, data.data(), data.size()) == expected_new);
    }

    void read(Span span) const {
        std::array<char, LONGEST> out{};
        try {
            file_.read(span.first, out.data(), span.second);
            EXPECT(model_.has(span));
            EXPECT(std::string(out.data(), span.second) == truths(span.first, span.second));
        } catch (const quarrier::NotHeldError &error) {
            EXPECT(error.span() == model_.runs({span}, false).at(0));
        }
    }

    void read_many() const {
        const Spans spans = draw_spans();
        std::string expected;
        bool has_all = true;
        for (const Span &span : spans) {
            expected += truths(span.first, span.second);
            has_all = has_all && model_.has(span);
        }
        std::string out(expected.size(), '\0');
        try {
            file_.read_many(spans, out.data(), out.size());
            EXPECT(has_all && out == expected);
        } catch (const quarrier::NotHeldError &error) {
            EXPECT(!has_all && !model_.has(error.span()));
        }
    }

    void need(Span span) const {
        const Spans missing = model_.runs({span}, false);
        EXPECT(file_.need(span.first, span.second) == missing);
        const std::uint64_t greedy = 1 + draw(40);
        check_greedy(file_.need(span.first, span.second, greedy), missing, greedy);
    }

    void need_many() const {
        const Spans spans = draw_spans();
        const Spans missing = model_.runs(spans, false);
        EXPECT(file_.need_many(spans) == missing);
        const std::uint64_t greedy = 1 + draw(40);
        check_greedy(file_.need_many(spans, greedy), missing, greedy);
        for (const Span &request : file_.need_many(spans, quarrier::CostModel{})) {
            EXPECT(request.second > 0 && request.first + request.second <= BYTES);
        }
    }

    void erase(Span span) {
        EXPECT(file_.erase(span.first, span.second) == model_.count(span));
        model_.set(span, false);
    }

    // A pinned byte stays, whatever is erased or evicted.
    void pin(Span span) {
        if (span.second == 0 || !model_.has(span)) {
            return;
        }
        file_.pin(span.first, span.second);
        try {
            file_.erase(span.first, span.second);
            EXPECT(false);
        } catch (const quarrier::PinnedError &) {
        }
        const std::uint64_t bytes_max = draw(BYTES);
        const std::uint64_t before = file_.num_bytes();
        EXPECT(before - file_.evict(bytes_max) == file_.num_bytes());
        EXPECT(file_.num_bytes() <= std::max(bytes_max, span.second));
        for (std::uint64_t at = 0; at < BYTES; at++) {
            const bool is_left = file_.has(at, 1);
            EXPECT(model_.held[at] || !is_left);
            model_.held[at] = is_left;
        }
        EXPECT(model_.has(span));
        file_.unpin(span.first, span.second);
    }

    // Serialised and restored; moved into a store, where it stays usable after its removal.
    void rarely() {
        switch (draw(60)) {
        case 0: {
            const std::string bytes = file_.to_bytes();
            file_ = quarrier::SparseFile::from_bytes(bytes.data(), bytes.size());
            is_own_ = true;
            break;
        }
        case 1:
            if (is_own_ && !store_.has("model")) {
                store_.insert(file_);
                file_ = store_.get("model");
                is_own_ = false;
            }
            break;
        case 2:
            if (store_.has("model")) {
                store_.remove("model");
            }
            break;
        case 3: {
            const std::string bytes = store_.to_bytes();
            const auto again = quarrier::SparseStore::from_bytes(bytes.data(), bytes.size());
            EXPECT(again.ids() == store_.ids() && again.num_bytes() == store_.num_bytes());
            break;
        }
        default: break;
        }
    }

    Model model_;
    quarrier::SparseFile file_{"model"};
    quarrier::SparseStore store_;
    bool is_own_ = true;
};

// A file of svfsc's interface, and its model.
class Ancestor {
public:
    void operate() {
        const Span span{draw(BYTES - LONGEST), 1 + draw(LONGEST - 1)};
        switch (draw(16)) {
        case 0: case 1: case 2: case 3: {
            const std::string data = truths(span.first, span.second);
            svf_.write(span.first, data.data(), data.size());
            model_.set(span, true);
            break;
        }
        case 4: case 5: case 6: read(span); break;
        case 7: case 8: case 9: {
            EXPECT(Spans(svf_.need(span.first, span.second)) == model_.runs({span}, false));
            SVFS::t_seek_reads wanted = draw_spans();
            for (auto &one : wanted) {
                one.second++;
            }
            const Spans missing = model_.runs(wanted, false);
            EXPECT(Spans(svf_.need_many(wanted)) == missing);
            break;
        }
        case 10: case 11: EXPECT(svf_.has(span.first, span.second) == model_.has(span)); break;
        case 12: case 13: erase(); break;
        case 14: punt(); break;
        default: check(); break;
        }
    }

    void check() const {
        const Spans blocks = model_.blocks();
        EXPECT(Spans(svf_.blocks()) == blocks && svf_.num_blocks() == blocks.size());
        EXPECT(svf_.num_bytes() == model_.count({0, BYTES}));
        const std::uint64_t end = blocks.empty() ? 0 : blocks.back().first + blocks.back().second;
        EXPECT(svf_.last_file_position() == end && svf_.block_touches().size() == blocks.size());
    }

private:
    void read(Span span) {
        std::array<char, LONGEST> out{};
        try {
            svf_.read(span.first, span.second, out.data());
            EXPECT(model_.has(span));
            EXPECT(std::string(out.data(), span.second) == truths(span.first, span.second));
        } catch (const SVFS::Exceptions::ExceptionSparseVirtualFileRead &error) {
            EXPECT(!model_.has(span) && !error.message().empty());
        }
    }

    // Only where a block begins.
    void erase() {
        const Spans blocks = model_.blocks();
        if (!blocks.empty()) {
            const Span block = blocks[draw(blocks.size())];
            EXPECT(svf_.block_size(block.first) == block.second);
            EXPECT(svf_.erase(block.first) == block.second);
            model_.set(block, false);
        }
        const std::uint64_t other = draw(BYTES);
        try {
            svf_.erase(other);
            EXPECT(model_.held[other] && (other == 0 || !model_.held[other - 1]));
            for (std::uint64_t at = other; at < BYTES && model_.held[at]; at++) {
                model_.held[at] = false;
            }
        } catch (const SVFS::Exceptions::ExceptionSparseVirtualFileErase &) {
            EXPECT(!model_.held[other] || (other > 0 && model_.held[other - 1]));
        }
    }

    void punt() {
        const std::uint64_t bytes_max = draw(BYTES);
        const std::uint64_t before = svf_.num_bytes();
        EXPECT(svf_.lru_punt(bytes_max) == before - svf_.num_bytes());
        EXPECT(svf_.num_bytes() < bytes_max || svf_.num_blocks() <= 1);
        Spans left;
        for (const Span &block : model_.blocks()) {
            if (svf_.has(block.first, block.second)) {
                left.push_back(block);
            } else {
                model_.set(block, false);
            }
        }
        EXPECT(Spans(svf_.blocks()) == left);
    }

    Model model_;
    SVFS::SparseVirtualFile svf_{"model", 0.0};
};

} // namespace

int main(int argc, char **argv) {
    state = 0x9e3779b97f4a7c15u ^ (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1);
    const unsigned long operations = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 10000;
    File file;
    Ancestor ancestor;
    for (step = 0; step < operations; step++) {
        file.operate();
        ancestor.operate();
    }
    file.check();
    ancestor.check();
    return 0;
}
