// Fetch parts of a big file and find the missing ranges; then keep many such files within a budget.
//
//     c++ -std=c++17 sparse.cpp $(pkg-config --cflags --libs quarrier)
#include <iostream>
#include <string>
#include <vector>

#include <quarrier.hpp>

int main() {
    quarrier::SparseFile file{"https://example.org/big.tif"};
    file.write(14, "ABCDEF", 6);

    char out[2];
    file.read(16, out, sizeof out);
    std::cout << std::string(out, 2) << '\n';

    // What has to be fetched before 24 bytes at 8 can be read?
    for (const auto &[offset, length] : file.need(8, 24)) {
        std::cout << "fetch " << length << " bytes at " << offset << '\n';
    }
    // A small request costs more than its bytes: one larger request is cheaper here.
    for (const auto &[offset, length] : file.need_many({{8, 24}}, quarrier::CostModel{})) {
        std::cout << "or " << length << " bytes at " << offset << '\n';
    }

    try {
        file.write(15, "bcd", 3);
    } catch (const quarrier::ConflictError &error) {
        std::cout << error.what() << '\n';
    }

    // Many files, with a shared budget of 10 bytes.
    quarrier::SparseStore store(10);
    store.insert(file);
    quarrier::SparseFile other{"https://example.org/other.tif"};
    store.insert(other);
    other.write(0, "0123456", 7);
    std::cout << store.num_files() << " files hold " << store.num_bytes() << " bytes, "
              << store.get("https://example.org/big.tif").num_bytes() << " of them the first\n";
}

/* Prints:
 * CD
 * fetch 6 bytes at 8
 * fetch 12 bytes at 20
 * or 24 bytes at 8
 * the write differs from the bytes held at offset 15: 0x62 is given, 0x42 is held; was the file changed?
 * 2 files hold 10 bytes, 3 of them the first
 */
