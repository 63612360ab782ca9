#include "trace/json.hpp"

#include <doctest/doctest.h>

#include "testing/raw_trace.hpp"
#include "trace/reader.hpp"

namespace simai {
namespace {

using namespace testing;

std::string nodes_of(const std::string& nodes, std::size_t limit = 1000) {
    const std::string data = metadata() + nodes;
    return nodes_json(view(data), metadata_json(view(data)).next, limit).text;
}

TEST_CASE("json: a node with everything") {
    const std::string node_bytes =
        block(number(1, 5) + bytes(2, "a\"\\\n\xFF") + number(3, 7) + bytes(4, "\x01\x02") + number(5, 3) +
              number(6, 11) + number(7, 12) + bytes(8, bytes(1, "[]") + bytes(2, "[[4]]") + bytes(3, "['x']")) +
              integer("comm_size", -3) + text("pg_name", "1") + attribute("b", number(27, 1)) +
              attribute("d", varint(3 << 3 | 1) + std::string("\0\0\0\0\0\0\xF8\x3F", 8)) +
              attribute("nan", varint(3 << 3 | 1) + std::string("\0\0\0\0\0\0\xF8\x7F", 8)) + attribute("none", "") +
              attribute("list", bytes(8, bytes(1, "\x01\x02"))) + attribute("raw", bytes(31, "\xAB")) +
              attribute("texts", bytes(30, bytes(1, "p") + bytes(1, "q"))));
    CHECK(nodes_of(node_bytes) ==
          "{\"id\": 5, \"name\": \"a\\\"\\\\\\u000a\xEF\xBF\xBD\", \"type\": \"COMM_COLL\", \"ctrl_deps\": [1, 2], "
          "\"data_deps\": [3], \"start_time_micros\": 11, \"duration_micros\": 12, "
          "\"inputs\": {\"values\": \"[]\", \"shapes\": \"[[4]]\", \"types\": \"['x']\"}, "
          "\"attributes\": {\"comm_size\": -3, \"pg_name\": \"1\", \"b\": true, \"d\": 1.5, \"nan\": \"NaN\", "
          "\"none\": null, \"list\": [1, 2], \"raw\": \"ab\", \"texts\": [\"p\", \"q\"]}}");
}

TEST_CASE("json: in pieces") {
    const std::string data = file({comp(1, 1), comp(2, 1), comp(3, 1)});
    const JsonPiece head = metadata_json(view(data));
    CHECK(head.text == "{\"version\": \"0.0.4\", \"attributes\": {}}");
    std::string pieces;
    for (std::size_t at = head.next; at < data.size();) {
        const JsonPiece piece = nodes_json(view(data), at, 1);
        pieces += (pieces.empty() ? "" : ",\n") + piece.text;
        at = piece.next;
    }
    CHECK(pieces == nodes_json(view(data), head.next, 100'000).text);
}

TEST_CASE("json: of what is no trace there is none") {
    CHECK_THROWS_AS(metadata_json(view("")), TraceError);
    CHECK_THROWS_AS(nodes_of("\x05\x08"), WireError);
}

}  // namespace
}  // namespace simai
