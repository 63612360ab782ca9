#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "chunk/chunk_run.hpp"
#include "testing/small_cluster.hpp"

namespace simai {
namespace {

using doctest::Approx;
using testing::one_hop;
using testing::small_cluster;

// 1000 chunks of 1 MB over a NIC of 1 GB/s: 1 s without failures.
constexpr std::int64_t kBytes = 1'000'000'000;
constexpr double kChunkS = 1e-3;

NicEvent at(double time_s, int nic, double fraction) { return {nic, fraction, time_s, -1}; }

Cluster cluster_of(int nics, double delay_s = 0) {
    Cluster cluster = small_cluster(2, nics, 1e9);
    cluster.resume_delay_s = delay_s;
    cluster.window_chunks = 4;
    return cluster;
}

Outcome run(const Cluster& cluster, const std::vector<NicEvent>& events, const React& react = {},
            Provenance* provenance = nullptr, const RunLimits& limits = {}) {
    const int target = static_cast<int>(cluster.nics.size()) / 2;
    return run_chunk(cluster, one_hop(kBytes, 1000), {{0, 0, 1, 0, target, 1}}, events, react,
                     {limits, provenance, true});
}

TEST_CASE("chunk: bytes over rate, to the picosecond") {
    const Outcome out = run(cluster_of(1), {});
    CHECK(out.status == Status::kDone);
    CHECK(out.elapsed_s == Approx(1).epsilon(1e-12));
    CHECK(out.out_payload[0] == kBytes);
    CHECK(out.in_payload[1] == kBytes);
}

TEST_CASE("chunk: wherever the cut falls it ends at 1 s + detection, within the chunk that is repeated") {
    for (int k = 0; k < 200; ++k) {
        const Schedule schedule = one_hop(kBytes, 1000);
        Provenance provenance(schedule);
        const Outcome out = run(cluster_of(2, 0.3), {at(0.005 * k + 1.7e-5 * k, 0, 0)}, {}, &provenance);
        REQUIRE(out.status == Status::kDone);
        if (0.005 * k + 1.7e-5 * k >= 1) continue;  // after the end
        CHECK(out.elapsed_s >= 1.3 * (1 - 1e-9));
        CHECK(out.elapsed_s <= 1.3 + 4 * kChunkS);
        CHECK(out.in_payload[2] + out.in_payload[3] == kBytes);
        const auto& twice = provenance.more();
        CHECK(std::all_of(twice.begin(), twice.end(), [](std::uint64_t ranks) { return ranks == 0; }));
    }
}

TEST_CASE("chunk: two failures, a flap and a slowdown on one connection leave no byte behind") {
    const std::vector<NicEvent> events{at(0.1, 0, 0), at(0.15, 0, 1), at(0.3, 0, 0.5), at(0.5, 0, 0), at(0.9, 1, 0)};
    const Outcome out = run(cluster_of(3, 0.1), events);
    CHECK(out.status == Status::kDone);
    // 0.05 s flap, 0.2 s at half rate, twice 0.1 s of detection.
    CHECK(out.elapsed_s == Approx(1 + 0.05 + 0.1 + 0.2).epsilon(0.02));
    CHECK(out.out_payload[0] + out.out_payload[1] + out.out_payload[2] == kBytes);
}

TEST_CASE("chunk: nobody is left, given up, or never found out") {
    CHECK(run(cluster_of(1), {at(0.4, 0, 0)}).status == Status::kPartitioned);
    const Outcome out = run(cluster_of(2), {at(0.4, 0, 0)}, [](const Broken&) { return Reaction{{}, "given up"}; });
    CHECK(out.status == Status::kAborted);
    CHECK(out.reason == "given up");
    CHECK(run(cluster_of(2, 1e5), {at(0.4, 0, 0)}, {}, nullptr, {1000, 1'000'000}).status == Status::kUnfinished);
}

TEST_CASE("chunk: a rebinding takes the lanes it names, an impossible one is refused") {
    const Outcome out =
        run(cluster_of(3), {at(0.4005, 0, 0)}, [](const Broken&) { return Reaction{Binding{{0, 0, 1, 2, 5, 1}}, {}}; });
    CHECK(out.out_payload[2] == Approx(0.6 * kBytes).epsilon(0.01));
    CHECK_THROWS_AS(
        run(cluster_of(2), {at(0.4, 0, 0)}, [](const Broken&) { return Reaction{Binding{{0, 0, 1, 2, 3, 1}}, {}}; }),
        std::invalid_argument);
}

TEST_CASE("chunk: an event on a NIC that does not exist is refused") {
    CHECK_THROWS_AS(run(cluster_of(1), {at(0, 2, 0)}), std::invalid_argument);
    CHECK_THROWS_AS(run(cluster_of(1), {at(0, -1, 0)}), std::invalid_argument);
}

TEST_CASE("chunk: a window of chunks in flight, none without a byte") {
    // 3 bytes in 1000 pieces: only three of them travel.
    const Outcome out = run_chunk(cluster_of(1), one_hop(3, 1000), {{0, 0, 1, 0, 1, 1}}, {}, {}, {});
    CHECK(out.status == Status::kDone);
    CHECK(out.in_payload[1] == 3);
    CHECK(out.steps < 20);
}

}  // namespace
}  // namespace simai
