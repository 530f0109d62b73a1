// Filter messages in place, load them as columns, and export an answer over the Arrow C stream interface.
//
//     c++ -std=c++17 messages.cpp $(pkg-config --cflags --libs quarrier)
#include <fstream>
#include <iostream>

#include <quarrier.hpp>

int main() {
    std::ofstream("orders.ndjson") << "{\"side\": \"B\", \"qty\": 7}\n"
                                      "{\"side\": \"S\", \"qty\": 8}\n"
                                      "no message\n"
                                      "{\"side\": \"B\", \"qty\": 9}\n";

    const auto report = quarrier::filter("orders.ndjson", "side = 'B'", [](const quarrier::Message &message) {
        std::cout << message.offset << ": " << message.bytes << '\n';
    });
    std::cout << report.rows << " messages, " << report.rejected << " left out\n";

    const auto table = quarrier::Table::load("orders.ndjson");
    const auto answer = table.query("SELECT qty FROM m WHERE qty > 7 ORDER BY qty DESC");
    std::cout << table.rows() << " rows, of which " << answer.rows() << " are large\n";

    // Any library that reads Arrow can take the rows from here.
    ArrowArrayStream stream;
    answer.export_stream(&stream);
    ArrowArray batch;
    if (stream.get_next(&stream, &batch) == 0 && batch.release != nullptr) {
        std::cout << batch.length << " rows in " << batch.n_children << " column\n";
        batch.release(&batch);
    }
    stream.release(&stream);

    try {
        table.query("SELECT price FROM m");
    } catch (const quarrier::QueryError &) {
        std::cout << "there is no price\n";
    }
}

/* Prints:
 * 0: {"side": "B", "qty": 7}
 * 59: {"side": "B", "qty": 9}
 * 2 messages, 1 left out
 * 3 rows, of which 2 are large
 * 2 rows in 1 column
 * there is no price
 */
