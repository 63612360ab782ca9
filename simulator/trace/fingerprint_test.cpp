#include "trace/fingerprint.hpp"

#include <doctest/doctest.h>

#include "testing/raw_trace.hpp"
#include "trace/reader.hpp"

namespace simai {
namespace {

using namespace testing;

Fingerprint of(const std::string& data) { return fingerprint(read_trace(view(data)).trace); }

TEST_CASE("fingerprint: the same for other groups and peers, if they play the same roles") {
    const auto rank = [](std::string_view group, std::int64_t next, std::int64_t previous) {
        return file({coll(1, 0, 8, group), send(2, next, 8, 0, {1}), recv(3, previous, 8, 0)});
    };
    CHECK(of(rank("1", 1, 2)).digest == of(rank("7", 5, 6)).digest);
    CHECK(of(rank("1", 1, 2)).digest != of(rank("1", 1, 1)).digest);  // one peer instead of two
    CHECK(of(rank("1", 1, 2)).digest != of(rank("0", 1, 2)).digest);  // all ranks instead of some
}

TEST_CASE("fingerprint: another one for every difference of a node") {
    const std::string base = node(2, 7, {1}, integer("comm_type", 0) + integer("comm_size", 8));
    const std::array<std::uint64_t, 2> digest = of(file({comp(1, 1), base})).digest;
    for (const std::string& other : {
             node(2, 7, {}, integer("comm_type", 0) + integer("comm_size", 8)),
             node(2, 7, {1}, integer("comm_type", 2) + integer("comm_size", 8)),
             node(2, 7, {1}, integer("comm_type", 0) + integer("comm_size", 9)),
             node(2, 7, {1}, integer("comm_type", 0) + integer("comm_size", 8) + bytes(2, "x")),
             node(2, 7, {1}, integer("comm_type", 0) + integer("comm_size", 8) + number(7, 1)),
             node(2, 7, {1}, integer("comm_type", 0) + integer("comm_size", 8) + attribute("is_cpu_op", number(27, 1))),
         })
        CHECK(of(file({comp(1, 1), other})).digest != digest);
}

TEST_CASE("fingerprint: the same whatever the numbers of the nodes, which some tools count on over all ranks") {
    const std::string same = node(109, 7, {101}, integer("comm_type", 0) + integer("comm_size", 8));
    const std::string base = node(2, 7, {1}, integer("comm_type", 0) + integer("comm_size", 8));
    CHECK(of(file({comp(101, 1), same})).digest == of(file({comp(1, 1), base})).digest);
}

TEST_CASE("fingerprint: collectives in their order, messages in any; sends equal the receives that match them") {
    const std::string a = coll(1, 0, 8, "1"), b = coll(2, 2, 8, "1");
    CHECK(of(file({a, b})).collectives != of(file({b, a})).collectives);
    CHECK(of(file({coll(1, 0, 8, "1"), coll(2, 0, 8, "2")})).collectives[0] == of(file({a})).collectives[0]);
    const std::string s1 = send(1, 1, 8, 0), s2 = send(2, 1, 16, 3), r1 = recv(1, 1, 8, 0), r2 = recv(2, 1, 16, 3);
    CHECK(of(file({s1, s2})).sends == of(file({s2, s1})).sends);
    CHECK(of(file({s1, s2})).sends == of(file({r2, r1})).receives);
    CHECK(of(file({s1, s2})).receives == std::vector<std::uint64_t>{0});
    CHECK(of(file({s1, s1})).sends != of(file({s1})).sends);
    CHECK(of(file({send(1, 1, 8, 1)})).sends != of(file({send(1, 1, 1, 8)})).sends);
}

}  // namespace
}  // namespace simai
