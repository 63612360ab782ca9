#include "trace/critical_path.hpp"

#include <doctest/doctest.h>

#include "testing/raw_trace.hpp"
#include "trace/reader.hpp"

namespace simai {
namespace {

using namespace testing;
using doctest::Approx;

TEST_CASE("critical path: the longest chain of compute, through communication that counts as nothing") {
    // 1 (5 us) -> 3 (2) -> AllReduce 4 -> 6 (4): 11 us; 2 (8 us) -> 5 (2): 10 us.
    const std::string data =
        file({comp(1, 5), comp(2, 8), comp(3, 2, {1}), coll(4, 0, 8, "1", {3}), comp(5, 2, {2}), comp(6, 4, {4})});
    const CriticalPath path = critical_path(read_trace(view(data)).trace);
    CHECK(path.seconds == Approx(11e-6));
    CHECK(path.positions == std::vector<std::uint32_t>{0, 2, 3, 5});
}

TEST_CASE("critical path: of nothing, and of dependencies that point ahead") {
    CHECK(critical_path(Trace{}).positions.empty());
    const CriticalPath path = critical_path(read_trace(view(file({comp(1, 1, {2}), comp(2, 3)}))).trace);
    CHECK(path.seconds == Approx(4e-6));
    CHECK(path.positions == std::vector<std::uint32_t>{1, 0});
}

}  // namespace
}  // namespace simai
