#include "trace/reader.hpp"

#include <doctest/doctest.h>

#include "testing/raw_trace.hpp"

namespace simai {
namespace {

using namespace testing;
using doctest::Approx;

struct Expected {
    std::string what;
    std::string data;
    Check check;
    std::int64_t node;
    std::int64_t position;
    std::string reason;
};

void check_findings(const std::vector<Expected>& cases) {
    for (const Expected& one : cases) {
        CAPTURE(one.what);
        const Reading read = read_trace(view(one.data));
        REQUIRE(read.findings.all().size() == 1);
        const Finding& found = read.findings.all().front();
        CHECK(found.check.name == one.check.name);
        CHECK(found.node == one.node);
        CHECK(found.position == one.position);
        CHECK(found.reason == one.reason);
        CHECK(read.findings.errors() == (one.check.severity == Severity::kError ? 1 : 0));
    }
}

TEST_CASE("reader: every kind of node, roles in the order of first use, dependencies ascending and each once") {
    const std::string data = file({
        comp(10, 7),
        coll(11, 0, 4096, "3", {10, 10}),
        send(12, 5, 100, 9, {11, 10}),
        recv(13, 2, 200, 8),
        coll(14, 2, 64, "", {12}),
        coll(15, 7, 64, "03", {13, 12}),
        node(16, 5, {15}, integer("comm_dst", 2) + integer("comm_size", 1) + integer("comm_tag", 0)),
    });
    const Reading read = read_trace(view(data));
    CHECK(read.findings.all().empty());
    CHECK(read.version == "0.0.4");
    const Trace& trace = read.trace;
    REQUIRE(trace.nodes.size() == 7);
    CHECK(trace.groups == std::vector<std::string>{"3", "0"});  // "" is the group of all ranks
    CHECK(trace.peers == std::vector<std::int64_t>{5, 2});
    CHECK(trace.nodes[0].duration_s == Approx(7e-6));
    CHECK(trace.nodes[1].comm == CommType::kAllReduce);
    CHECK(trace.nodes[1].bytes == 4096);
    CHECK(trace.nodes[5].group == 0);
    CHECK(trace.nodes[4].group == 1);
    CHECK(trace.nodes[2].peer == 0);
    CHECK(trace.nodes[2].tag == 9);
    CHECK(trace.nodes[3].peer == 1);
    CHECK(trace.nodes[6].peer == 1);
    CHECK(trace.deps == std::vector<std::uint32_t>{0, 0, 1, 2, 2, 3, 5});
    CHECK(trace.dep_offsets == std::vector<std::uint32_t>{0, 0, 1, 3, 3, 4, 6, 7});
}

TEST_CASE("reader: an integer may be written in every integer type") {
    const auto fixed = [](std::uint32_t field, std::uint64_t value, int size) {
        std::string out = varint(field << 3 | (size == 4 ? 5 : 1));
        for (int i = 0; i < size; ++i) out += static_cast<char>(value >> 8 * i);
        return out;
    };
    const std::vector<std::string> values{number(7, 1000),
                                          number(9, 1000),
                                          number(11, 1000),
                                          number(13, 1000),
                                          number(15, 2000),
                                          number(17, 2000),
                                          fixed(19, 1000, 4),
                                          fixed(21, 1000, 8),
                                          fixed(23, 1000, 4),
                                          fixed(25, 1000, 8),
                                          number(7, 1) + number(13, 1000)};
    for (const std::string& value : values) {
        const std::string data =
            file({node(1, 5, {}, integer("comm_dst", 1) + integer("comm_tag", 0) + attribute("comm_size", value))});
        const Reading read = read_trace(view(data));
        CHECK(read.findings.all().empty());
        CHECK(read.trace.nodes.at(0).bytes == 1000);
    }
}

TEST_CASE("reader: duration_nanos wins over duration_micros; a bool says that a node runs on the CPU") {
    const std::string data = file({node(
        1, 4, {},
        number(schema::kNodeDuration, 2) + integer("duration_nanos", 1500) + attribute("is_cpu_op", number(27, 1)))});
    const Reading read = read_trace(view(data));
    CHECK(read.findings.all().empty());
    CHECK(read.trace.nodes.at(0).duration_s == Approx(1.5e-6));
    CHECK(read.trace.nodes.at(0).on_cpu);
}

TEST_CASE("reader: padded varints, unpacked lists, control dependencies, unknown fields and attributes are fine") {
    const std::string data = file({
        comp(1, 5),
        block(number(1, 2) + number(3, 5) + number(4, 1) + number(5, 1) + number(99, 7) + bytes(98, "x") +
              attribute("comm_dst", std::string("\x38\x85\x80\x00", 4)) + integer("comm_size", 3) +
              integer("comm_tag", 0) + text("color", "red") + attribute("involved", bytes(28, "\x08"))),
    });
    const Reading read = read_trace(view(data));
    CHECK(read.findings.all().empty());
    CHECK(read.trace.peers == std::vector<std::int64_t>{5});
    CHECK(read.trace.deps == std::vector<std::uint32_t>{0});
}

TEST_CASE("reader: dependencies may point ahead, as long as there is no cycle") {
    const std::string data = file({comp(5, 1, {9}), comp(9, 1, {7}), comp(7, 1)});
    const Reading read = read_trace(view(data));
    CHECK(read.findings.all().empty());
    CHECK(read.trace.deps == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("reader: what is wrong with a node is told with its id and position") {
    const std::string size = integer("comm_size", 8), tag = integer("comm_tag", 0), dst = integer("comm_dst", 1);
    const auto second = [](const std::string& more, std::uint64_t type) {
        return file({comp(3, 1), node(4, type, {}, more)});
    };
    check_findings({
        {"id", file({comp(1ULL << 63, 1)}), checks::kRange, -1, 0, "id 9223372036854775808; it must be below 2^63"},
        {"unknown type", second("", 8), checks::kNodeType, 4, 1,
         "node type 8; Chakra has 1 (METADATA) to 7 (COMM_COLL)"},
        {"no type", second("", 0), checks::kInvalidNode, 4, 1, "a node without a type; it takes no time"},
        {"no comm_size", second(dst + tag, 5), checks::kMissingAttribute, 4, 1, "COMM_SEND without comm_size"},
        {"no comm_type", second(size, 7), checks::kMissingAttribute, 4, 1, "COMM_COLL without comm_type"},
        {"no comm_dst", second(size + tag, 5), checks::kMissingAttribute, 4, 1, "COMM_SEND without comm_dst"},
        {"no comm_src", second(size + tag + dst, 6), checks::kMissingAttribute, 4, 1, "COMM_RECV without comm_src"},
        {"no comm_tag", second(size + dst, 5), checks::kMissingAttribute, 4, 1, "COMM_SEND without comm_tag"},
        {"a string", second(dst + tag + text("comm_size", "8"), 5), checks::kAttributeType, 4, 1,
         "comm_size is a string; a whole number is wanted"},
        {"a double", second(attribute("num_ops", varint(3 << 3 | 1) + std::string(8, '\0')) + number(7, 1), 4),
         checks::kAttributeType, 4, 1, "num_ops is a floating-point number; a whole number is wanted"},
        {"a list", second(dst + tag + attribute("comm_size", bytes(10, "\x08\x01")), 5), checks::kAttributeType, 4, 1,
         "comm_size is a list; a whole number is wanted"},
        {"no value", second(dst + tag + attribute("comm_size", ""), 5), checks::kAttributeType, 4, 1,
         "comm_size is empty; a whole number is wanted"},
        {"negative", second(dst + tag + integer("comm_size", -5), 5), checks::kRange, 4, 1,
         "comm_size -5; it must lie from 0 to 2^63 - 1"},
        {"negative peer", second(size + tag + integer("comm_dst", -1), 5), checks::kRange, 4, 1,
         "comm_dst -1; it must lie from 0 to 2^63 - 1"},
        {"too large", second(dst + tag + attribute("comm_size", number(13, 1ULL << 63)), 5), checks::kRange, 4, 1,
         "comm_size 9223372036854775808; it must lie from 0 to 2^63 - 1"},
        {"unknown collective", second(size + integer("comm_type", 77), 7), checks::kCommType, 4, 1,
         "comm_type 77; only ALL_REDUCE 0, ALL_GATHER 2, BROADCAST 5, ALL_TO_ALL 6 and REDUCE_SCATTER 7 can be run"},
        {"a collective that cannot be run", second(size + integer("comm_type", 9), 7), checks::kCommType, 4, 1,
         "comm_type 9 (BARRIER); only ALL_REDUCE 0, ALL_GATHER 2, BROADCAST 5, ALL_TO_ALL 6 and REDUCE_SCATTER 7 can "
         "be run"},
        {"a group without a number", file({comp(3, 1), coll(4, 0, 8, "dp")}), checks::kGroupName, 4, 1,
         "pg_name 'dp'; the number of a group is wanted, as a string"},
        {"a group that is a number", second(size + integer("comm_type", 0) + integer("pg_name", 3), 7),
         checks::kAttributeType, 4, 1, "pg_name is a whole number; a string is wanted"},
        {"a name that is no text", file({comp(3, 1), node(4, 1, {}, bytes(2, "a\xFF"))}), checks::kText, 4, 1,
         "its name 'a\xEF\xBF\xBD' is not UTF-8"},
        {"a negative duration", second(number(7, ~0ULL), 1), checks::kRange, 4, 1,
         "duration_micros 18446744073709551615; a negative number as unsigned?"},
        {"memory", second(number(7, 5), 2), checks::kMemoryNode, 4, 1,
         "MEM_LOAD takes its duration_micros here; ASTRA-sim has a memory model"},
        {"no duration", second("", 4), checks::kNoDuration, 4, 1,
         "COMP without duration_micros and without num_ops; it takes no time"},
        {"operations alone", second(integer("num_ops", 5), 4), checks::kNoDuration, 4, 1,
         "COMP with num_ops but no duration_micros; it takes no time"},
        {"no bytes", file({comp(3, 1), coll(4, 0, 0, "1")}), checks::kZeroBytes, 4, 1,
         "COMM_COLL of 0 bytes: it only synchronises"},
        {"a tag of ASTRA-sim", file({comp(3, 1), send(4, 1, 8, 500'000'000)}), checks::kReservedTag, 4, 1,
         "comm_tag 500000000; ASTRA-sim uses tags from 500000000 on for its collectives"},
        {"replay only", file({comp(3, 1), coll(4, 5, 8, "1")}), checks::kReplayOnly, 4, 1,
         "BROADCAST: ASTRA-sim only replays it"},
        {"no dimension",
         second(size + integer("comm_type", 0) + attribute("involved_dim", bytes(28, bytes(1, std::string(2, '\0')))),
                7),
         checks::kNoDimension, 4, 1, "involved_dim is false for every dimension; ASTRA-sim never ends it"},
    });
}

TEST_CASE("reader: what is no trace is named") {
    const std::string good = file({comp(3, 1), comp(4, 1)});
    const std::string bad = "broken or cut off at byte ";
    check_findings({
        {"nothing", "", checks::kEmpty, -1, -1, "empty; it must begin with the metadata"},
        {"gzip", "\x1F\x8B\x08", checks::kCompressed, -1, -1, "compressed with gzip; decompress it first (gunzip)"},
        {"zstd", "\x28\xB5\x2F\xFD", checks::kCompressed, -1, -1, "compressed with zstd; decompress it first (unzstd)"},
        {"text", "{\"id\": 1}", checks::kNoMetadata, -1, -1,
         "it does not begin with Chakra's GlobalMetadata; it is text; a .et file is wanted"},
        {"nodes at once", comp(3, 1), checks::kNoMetadata, -1, -1,
         "it does not begin with Chakra's GlobalMetadata; a .et file is wanted"},
        {"a version of another time", metadata("0.0.9") + comp(3, 1), checks::kVersion, -1, -1,
         "version '0.0.9' is unknown; read as 0.0.4"},
        {"no nodes", metadata(), checks::kNoNodes, -1, -1, "it has no nodes"},
        {"cut off within a node", good.substr(0, good.size() - 1), checks::kNoTrace, -1, 1,
         bad + "16 (after node 3): it wants 6 bytes where 5 are left"},
        {"cut off within a length", good + "\x80", checks::kNoTrace, -1, 2,
         bad + "22 (after node 4): it ends within a number"},
        {"an absurd length", good + varint(~0ULL) + "x", checks::kNoTrace, -1, 2,
         bad + "32 (after node 4): it wants 18446744073709551615 bytes where 1 are left"},
        {"an empty message", good + std::string(1, '\0'), checks::kNoTrace, -1, 2,
         bad + "22 (after node 4): an empty message where a node is wanted"},
        {"a group of the old format", good + block("\x0B"), checks::kNoTrace, -1, 2,
         bad + "23 (after node 4): a field of wire type 3"},
    });
}

TEST_CASE("reader: sizes that look like numbers of elements (bytes / 2 or / 4)") {
    const auto shapes = [](std::string_view text, std::string_view types) {
        return bytes(schema::kNodeInputs, bytes(2, text) + bytes(3, types));
    };
    const auto reduce = [](std::int64_t size, const std::string& more) {
        return file({node(1, 7, {}, integer("comm_type", 0) + integer("comm_size", size) + more)});
    };
    const std::string is_count = "comm_size 4096 is the number of elements of one of its inputs; bytes are wanted";
    check_findings({
        {"the product of a shape", reduce(4096, shapes("[[8], [[2, 64,32], []]]", "Tensor(float)")),
         checks::kElementCount, 1, 0, is_count},
        {"a quarter", reduce(1024, integer("tensor_size", 4096)), checks::kElementCount, 1, 0,
         "comm_size 1024 is a quarter of tensor_size 4096: elements instead of bytes?"},
        {"a half", reduce(2048, integer("tensor_size", 4096)), checks::kElementCount, 1, 0,
         "comm_size 2048 is a half of tensor_size 4096: elements instead of bytes?"},
    });
    for (const std::string& fine :
         {reduce(4096, integer("tensor_size", 4096)), reduce(16384, shapes("[[64, 64]]", "Tensor(float)")),
          reduce(4096, shapes("[[64, 64]]", "Tensor(unsigned char)")), reduce(4096, shapes("[[64, -64]]", "")),
          reduce(4096, shapes("[[9223372036854775807, 4], [64, x]", "")),
          file({node(1, 7, {}, integer("comm_type", 2) + integer("comm_size", 64) + integer("tensor_size", 128))})})
        CHECK(read_trace(view(fine)).findings.all().empty());
}

TEST_CASE("reader: of many equal findings a few are kept, the others counted") {
    std::string data = metadata();
    for (std::uint64_t id = 1; id <= 1000; ++id) data += node(id, 9) + node(id + 1000, 4);
    const Reading read = read_trace(view(data));
    CHECK(read.findings.errors() == 1000);
    REQUIRE(read.findings.all().size() == Findings::kKeptErrors + Findings::kKeptOthers);
    std::int64_t all = 0;
    for (const Finding& one : read.findings.all()) all += 1 + one.more;
    CHECK(all == 2000);
}

}  // namespace
}  // namespace simai
