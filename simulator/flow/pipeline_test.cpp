#include "flow/pipeline.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "testing/small_cluster.hpp"

namespace simai {
namespace {

using doctest::Approx;
using testing::chain;
using testing::one_hop;
using testing::small_cluster;

Pipeline pipeline(const Cluster& cluster, const Schedule& schedule, const Binding& binding) {
    const Hops hops(cluster, schedule, binding);
    return pipeline_of(cluster, schedule, hops, 0, schedule.hop_bytes(schedule.passes[0]), port_rates(cluster));
}

TEST_CASE("pipeline: one hop without latency: nothing to fill, progress as fast as the port") {
    const Pipeline pipe = pipeline(small_cluster(2, 1, 100), one_hop(1000, 10), {{0, 0, 1, 0, 1, 1}});
    CHECK(pipe.fill_s == Approx(0));
    CHECK(pipe.cap == Approx(100));
}

TEST_CASE("pipeline: N chunks in windows of W wait ceil(N/W) - 1 times for a round trip of c/B + 2 latency") {
    Cluster cluster = small_cluster(2, 1, 100);
    cluster.net_latency_s = 2;
    cluster.window_chunks = 3;
    const Pipeline pipe = pipeline(cluster, one_hop(1000, 10), {{0, 0, 1, 0, 1, 1}});
    // 10 chunks of 1 s, windows of 3: 0 1 2, 5 6 7, 10 11 12, 15: three round trips of 5 s, and the last chunk.
    CHECK(pipe.cap == Approx(1000 / (3 * (1 + 2 * 2.0) + 1)));
    cluster.window_chunks = 0;  // no limit
    CHECK(pipeline(cluster, one_hop(1000, 10), {{0, 0, 1, 0, 1, 1}}).cap >= 99.9);
}

TEST_CASE("pipeline: h hops of K chunks take (K + h - 1) c/B + h latencies: work at the port + fill") {
    Cluster cluster = small_cluster(4, 1, 100);
    cluster.net_latency_s = 0.5;
    const Schedule schedule{4, 1000, 1, {{0, 1, 2, 3}}, {chain(0, 0, 1000, 3, 10)}};
    const Pipeline pipe = pipeline(cluster, schedule, {{0, 0, 1, 0, 1, 1}, {0, 1, 2, 1, 2, 1}, {0, 2, 3, 2, 3, 1}});
    CHECK(1000 / std::min(pipe.cap, 100.0) + pipe.fill_s == Approx((10 + 3 - 1) * 1.0 + 3 * 0.5));
}

TEST_CASE("pipeline: a hop over two NICs is as fast as both together") {
    const Schedule schedule = one_hop(100'000, 1000);
    const Pipeline even = pipeline(small_cluster(2, 2, 100), schedule, {{0, 0, 1, 0, 2, 0.5}, {0, 0, 1, 1, 3, 0.5}});
    CHECK(even.cap == Approx(200).epsilon(0.01));
    const Pipeline uneven =
        pipeline(small_cluster(2, 2, 100), schedule, {{0, 0, 1, 0, 2, 0.75}, {0, 0, 1, 1, 3, 0.25}});
    CHECK(uneven.cap == Approx(100 / 0.75).epsilon(0.01));
}

TEST_CASE("pipeline: a pass that moves nothing has no limit") {
    Schedule schedule = one_hop(1000);
    schedule.passes[0].copy_hops = 0;
    const Pipeline pipe = pipeline(small_cluster(2, 1, 100), schedule, {{0, 0, 1, 0, 1, 1}});
    CHECK(pipe.cap == kUnlimited);
    CHECK(pipe.fill_s == 0);
}

}  // namespace
}  // namespace simai
