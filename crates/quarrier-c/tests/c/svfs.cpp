// Code written for svfsc, compiled with the header that replaces its own.
#define SVF_THREAD_SAFE
#define SVFS_THREAD_SAFE
#include <cstdlib>
#include <cstring>
#include <iostream>

#include <quarrier/svfs.hpp>

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
        return error.message();
    }
    return "";
}

static void one_file() {
    SVFS::SparseVirtualFile svf("Some file ID", 1.5);
    EXPECT(svf.id() == "Some file ID" && svf.file_mod_time_matches(1.5) && !svf.file_mod_time_matches(1.6));
    EXPECT(svf.need(8, 24) == (SVFS::t_seek_reads{{8, 24}}) && !svf.has(0, 0));
    svf.write(14, "ABCDEF", 6);
    char out[6];
    svf.read(16, 2, out);
    EXPECT(std::memcmp(out, "CD", 2) == 0 && svf.has(14, 6) && svf.has(20, 0) && !svf.has(13, 2));
    EXPECT(svf.need(8, 24) == (SVFS::t_seek_reads{{8, 6}, {20, 12}}));
    EXPECT(svf.need(8, 8, 32) == (SVFS::t_seek_reads{{8, 32}}));
    SVFS::t_seek_reads many{{40, 4}, {8, 4}};
    EXPECT(svf.need_many(many) == (SVFS::t_seek_reads{{8, 4}, {40, 4}}) && many[0].first == 8);
    EXPECT(thrown<SVFS::Exceptions::ExceptionSparseVirtualFileDiff>([&] { svf.write(14, "ABX", 3); }) ==
           "SparseVirtualFile::write(): Difference at position 16 'X' != 'C' Ordinal 88 != 67");
    EXPECT(thrown<SVFS::Exceptions::ExceptionSparseVirtualFileRead>([&] { svf.read(10, 1, out); }) ==
           "SparseVirtualFile::read(): Requested file position 10 precedes first block at 14");
    EXPECT(thrown<SVFS::Exceptions::ExceptionSparseVirtualFileRead>([&] { svf.read(18, 4, out); }) ==
           "SparseVirtualFile::read(): Requested position 18 length 4 (end 22) overruns block that starts at "
           "14 has size 6 (end 20). Offset into block is 4 overrun is 2 bytes");
    EXPECT(thrown<SVFS::Exceptions::ExceptionSparseVirtualFileErase>([&] { svf.erase(15); }) ==
           "SparseVirtualFile::erase(): Non-existent file position 15 at start of block.");
    svf.write(100, "xy", 2);
    svf.write(50, "z", 1);
    EXPECT(svf.block_touch() == 4 && svf.block_touches() == (SVFS::t_block_touches{{1, 14}, {2, 100}, {3, 50}}));
    EXPECT(svf.block_size(100) == 2 && svf.last_file_position() == 102 && svf.num_blocks() == 3);
    EXPECT(svf.lru_punt(4) == 6 && svf.blocks() == (SVFS::t_seek_reads{{50, 1}, {100, 2}}));
    EXPECT(svf.blocks_punted() == 1 && svf.bytes_punted() == 6 && svf.blocks_erased() == 1);
    EXPECT(svf.count_write() == 3 && svf.bytes_write() == 9 && svf.count_read() == 1 && svf.bytes_read() == 2);
    EXPECT(svf.erase(100) == 2);
    svf.clear();
    EXPECT(svf.num_bytes() == 0 && svf.count_write() == 0 && svf.block_touch() == 0);
}

static void without_comparing() {
    SVFS::tSparseVirtualFileConfig config;
    config.compare_for_diff = false;
    config.overwrite_on_exit = true;
    SVFS::SparseVirtualFile svf("", 0.0, config);
    svf.write(4, "abcd", 4);
    svf.write(6, "XYZW", 4);
    char out[6];
    svf.read(4, 6, out);
    EXPECT(std::memcmp(out, "abcdZW", 6) == 0);
}

static void many_files() {
    SVFS::SparseVirtualFileSystem svfs;
    svfs.insert("a", 1.0);
    EXPECT(thrown<SVFS::Exceptions::ExceptionSparseVirtualFileSystemInsert>([&] { svfs.insert("a", 1.0); }) ==
           "SparseVirtualFileSystem::insert(): can not insert \"a\"");
    EXPECT(thrown<SVFS::Exceptions::ExceptionSparseVirtualFileSystemRemove>([&] { svfs.remove("b"); }) ==
           "SparseVirtualFileSystem::remove(): id \"b\" not found.");
    EXPECT(!thrown<SVFS::Exceptions::ExceptionSparseVirtualFileSystemOutOfRange>([&] { static_cast<void>(svfs.at("b")); })
                .empty());
    svfs.at("a").write(0, "xyz", 3);
    EXPECT(svfs.has("a") && svfs.size() == 1 && svfs.num_bytes() == 3 && svfs.num_blocks() == 1);
    EXPECT(svfs.keys() == std::vector<std::string>{"a"} && svfs.size_of() > 3);
    svfs.remove("a");
    EXPECT(svfs.size() == 0);
}

int main() {
    one_file();
    without_comparing();
    many_files();
    return 0;
}
