#include "trace/dependencies.hpp"

#include <doctest/doctest.h>

#include "testing/raw_trace.hpp"
#include "trace/reader.hpp"

namespace simai {
namespace {

using namespace testing;

std::vector<std::string> reasons(const std::string& data) {
    std::vector<std::string> out;
    const Reading read = read_trace(view(data));
    for (const Finding& one : read.findings.all())
        out.push_back(std::to_string(one.node) + " " + std::string(one.check.name) + ": " + one.reason);
    return out;
}

const std::string kCycle = " cycle: a cycle of dependencies, each waits for the next: ";

TEST_CASE("dependencies: one that does not exist is named") {
    CHECK(reasons(file({comp(1, 1), comp(2, 1, {1, 99})})) ==
          std::vector<std::string>{"2 missing-dependency: waits for node 99, which does not exist"});
    CHECK(reasons(file({comp(1, 1), comp(20, 1, {~0ULL}), comp(3, 1, {2})})) ==
          std::vector<std::string>{"20 missing-dependency: waits for node 18446744073709551615, which does not exist",
                                   "3 missing-dependency: waits for node 2, which does not exist"});
}

TEST_CASE("dependencies: an id that occurs twice is named with both positions") {
    CHECK(reasons(file({comp(7, 1), comp(8, 1), comp(7, 1), comp(7, 1)})) ==
          std::vector<std::string>{
              "7 duplicate-id: the node at position 2 has the id of the one at position 0",
              "7 duplicate-id: the node at position 3 has the id of the one at position 0",
          });
}

TEST_CASE("dependencies: cycles are printed as paths") {
    CHECK(reasons(file({comp(12, 1, {12})})) == std::vector<std::string>{"12" + kCycle + "12 -> 12"});
    CHECK(reasons(file({comp(12, 1, {7}), comp(7, 1, {12})})) ==
          std::vector<std::string>{"12" + kCycle + "12 -> 7 -> 12"});
    // 1 <- 2 <- 3 <- 4 <- 2, and 5 <- 4 outside; another cycle 8 <-> 9.
    CHECK(reasons(file({comp(1, 1), comp(2, 1, {1, 4}), comp(3, 1, {2}), comp(4, 1, {3}), comp(5, 1, {4}),
                        comp(8, 1, {9}), comp(9, 1, {8})})) ==
          std::vector<std::string>{"2" + kCycle + "2 -> 4 -> 3 -> 2", "8" + kCycle + "8 -> 9 -> 8"});
}

TEST_CASE("dependencies: a long cycle is shortened") {
    std::string data = metadata() + comp(1, 1, {100'000});
    for (std::uint64_t id = 2; id <= 100'000; ++id) data += comp(id, 1, {id - 1});
    const std::vector<std::string> found = reasons(data);
    REQUIRE(found.size() == 1);
    CHECK(found[0].starts_with("1" + kCycle + "1 -> 100000 -> 99999 -> "));
    CHECK(found[0].ends_with(" -> ... (100000 nodes) -> 1"));
}

TEST_CASE("dependencies: an order in which every node comes after those it waits for") {
    const std::string data = file({comp(5, 1, {9}), comp(9, 1, {7}), comp(7, 1), comp(3, 1, {5, 7})});
    const Reading read = read_trace(view(data));
    CHECK(topological_order(read.trace) == std::vector<std::uint32_t>{2, 1, 0, 3});
}

}  // namespace
}  // namespace simai
