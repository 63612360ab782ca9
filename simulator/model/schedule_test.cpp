#include "model/schedule.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <stdexcept>

#include "testing/small_cluster.hpp"

namespace simai {
namespace {

using testing::chain;
using testing::one_hop;
using Bytes = std::vector<std::int64_t>;

Schedule on_route(std::vector<int> route, bool cyclic, int hops, std::vector<Section> sections) {
    Pass pass = chain(0, 0, 0, hops);
    pass.cyclic = cyclic;
    pass.sections = std::move(sections);
    return {8, 1000, 1, {std::move(route)}, {pass}};
}

Bytes hop_bytes(const Schedule& schedule) { return schedule.hop_bytes(schedule.passes[0]); }

TEST_CASE("piece: n + 1 bounds that cover the range, parts differ by at most one byte") {
    for (const std::int64_t size : {0, 1, 7, 100, 1'000'003}) {
        for (const int n : {1, 2, 3, 7, 64}) {
            CHECK(piece(5, 5 + size, 0, n) == 5);
            CHECK(piece(5, 5 + size, n, n) == 5 + size);
            for (int i = 0; i < n; ++i) {
                const std::int64_t part = piece(5, 5 + size, i + 1, n) - piece(5, 5 + size, i, n);
                CHECK(part >= size / n);
                CHECK(part <= size / n + 1);
            }
        }
    }
}

TEST_CASE("piece: a petabyte in 1000 pieces does not overflow") {
    const std::int64_t size = 1'000'000'000'000'007;
    CHECK(piece(0, size, 1000, 1000) == size);
    CHECK(piece(0, size, 999, 1000) < size);
}

TEST_CASE("hop bytes: a chain loads the hops from its start to its end") {
    CHECK(hop_bytes(on_route({0, 1, 2, 3}, false, 3, {{0, 10, 0}})) == Bytes{10, 10, 10});
    CHECK(hop_bytes(on_route({0, 1, 2, 3}, false, 2, {{0, 10, 1}})) == Bytes{0, 10, 10});
    CHECK(hop_bytes(on_route({0, 1, 2, 3}, false, 1, {{0, 10, 0}, {10, 15, 2}})) == Bytes{10, 0, 5});
}

TEST_CASE("hop bytes: on a closed route sections run past the end, whole laps load all hops alike") {
    CHECK(hop_bytes(on_route({0, 1, 2}, true, 2, {{0, 10, 2}})) == Bytes{10, 0, 10});
    CHECK(hop_bytes(on_route({0, 1, 2}, true, 3, {{0, 10, 1}})) == Bytes{10, 10, 10});
    CHECK(hop_bytes(on_route({0, 1, 2}, true, 4, {{0, 10, 1}})) == Bytes{10, 20, 10});
    CHECK(hop_bytes(on_route({0, 1, 2}, true, 6, {{0, 10, 1}})) == Bytes{20, 20, 20});
}

TEST_CASE("hop bytes: sections from everywhere, n - 1 hops each: every hop carries all but one section") {
    // Hop h is not used by the section that starts at h + 1: 4 + 5 + 6 bytes less that one.
    CHECK(hop_bytes(on_route({0, 1, 2}, true, 2, {{0, 4, 0}, {4, 9, 1}, {9, 15, 2}})) == Bytes{10, 9, 11});
}

TEST_CASE("hop bytes: what is summed over hops is bytes times hops") {
    const Schedule schedule = on_route({3, 1, 4, 0, 5}, true, 7, {{0, 13, 0}, {13, 20, 3}, {20, 20, 1}, {20, 99, 4}});
    const Bytes load = hop_bytes(schedule);
    CHECK(std::accumulate(load.begin(), load.end(), std::int64_t{0}) == 99 * 7);
}

TEST_CASE("hop bytes: a pass that makes no hop loads none, even on a route of one rank") {
    CHECK(hop_bytes(on_route({0, 1}, false, 0, {{0, 10, 1}})) == Bytes{0});
    CHECK(hop_bytes(on_route({0}, false, 0, {{0, 10, 0}})).empty());
}

TEST_CASE("validate: what is good passes, what is not names the pass") {
    CHECK_NOTHROW(one_hop(10).validate());
    const auto spoilt = [](const auto& spoil) {
        Schedule schedule = one_hop(10);
        schedule.passes.push_back(schedule.passes[0]);
        spoil(schedule, schedule.passes[1]);
        return schedule;
    };
    CHECK_THROWS_WITH(spoilt([](Schedule&, Pass& p) { p.route = 1; }).validate(), "pass 1: no such route");
    CHECK_THROWS_WITH(spoilt([](Schedule&, Pass& p) { p.chunks = 0; }).validate(), "pass 1: chunks must be >= 1");
    CHECK_THROWS_WITH(spoilt([](Schedule&, Pass& p) { p.copy_hops = 2; }).validate(),
                      "pass 1: section runs past the end of the route");
    CHECK_THROWS_WITH(spoilt([](Schedule&, Pass& p) { p.sections[0].hi = 11; }).validate(),
                      "pass 1: section outside the buffer");
    CHECK_THROWS_WITH(spoilt([](Schedule&, Pass& p) { p.sections[0].start = 2; }).validate(),
                      "pass 1: section starts outside the route");
    CHECK_THROWS_WITH(spoilt([](Schedule&, Pass& p) { p.after = {1}; }).validate(),
                      "pass 1: waits for a pass that does not come before it");
    CHECK_THROWS_WITH(spoilt([](Schedule&, Pass& p) { p.weight = kUnlimited; }).validate(),
                      "pass 1: weight must be > 0 and finite");
    CHECK_THROWS_WITH(
        spoilt([](Schedule& s, Pass& p) { s.routes.push_back({}), p.route = 1, p.sections.clear(); }).validate(),
        "pass 1: a route needs a rank");
    CHECK_THROWS_WITH(spoilt([](Schedule& s, Pass&) { s.bytes = -1; }).validate(), "schedule: bytes must be >= 0");
    CHECK_THROWS_WITH(spoilt([](Schedule& s, Pass&) { s.wire_factor = 0; }).validate(),
                      "schedule: wire_factor must be > 0");
}

}  // namespace
}  // namespace simai
