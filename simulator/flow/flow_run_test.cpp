#include "flow/flow_run.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "testing/small_cluster.hpp"

namespace simai {
namespace {

using doctest::Approx;
using testing::chain;
using testing::one_hop;
using testing::small_cluster;

// 1000 bytes over a NIC of 100 bytes/s: 10 s without failures.
constexpr double kHealthy = 10;

NicEvent at(double time_s, int nic, double fraction) { return {nic, fraction, time_s, -1}; }

Outcome run(const Cluster& cluster, const std::vector<NicEvent>& events, const React& react = {},
            const RunLimits& limits = {}) {
    return run_flow(cluster, one_hop(1000, 1000), {{0, 0, 1, 0, static_cast<int>(cluster.nics.size()) / 2, 1}}, events,
                    react, limits);
}

TEST_CASE("flow: bytes over rate") {
    const Outcome out = run(small_cluster(2, 1, 100), {});
    CHECK(out.status == Status::kDone);
    CHECK(out.elapsed_s == Approx(kHealthy));
    CHECK(out.out_payload[0] == Approx(1000));
    CHECK(out.in_payload[1] == Approx(1000));
    CHECK(out.in_payload[0] == 0);
}

TEST_CASE("flow: a cut at 4 s that is known after 3 s goes on over the backup: 10 + 3 s") {
    Cluster cluster = small_cluster(2, 2, 100);
    cluster.resume_delay_s = 3;
    const Outcome out = run(cluster, {at(4.0005, 0, 0)});
    CHECK(out.elapsed_s == Approx(13).epsilon(1e-3));
    CHECK(out.out_payload[0] == Approx(400).epsilon(0.01));
    CHECK(out.out_payload[1] == Approx(600).epsilon(0.01));
    CHECK(out.in_payload[2] + out.in_payload[3] == Approx(1000).epsilon(0.01));
}

TEST_CASE("flow: nobody is left: partitioned, with the ranks and the NIC") {
    const Outcome out = run(small_cluster(2, 1, 100), {at(4, 0, 0)});
    CHECK(out.status == Status::kPartitioned);
    CHECK(out.reason == "no NIC is left between server0 (rank 0) and server1 (rank 1) after server0.nic0 went down");
    CHECK(out.elapsed_s == Approx(4));
}

TEST_CASE("flow: a reaction may abort, rebind, or leave it to the backups") {
    Cluster cluster = small_cluster(2, 3, 100);
    int told = 0;
    const auto abort = run(cluster, {at(4, 0, 0)}, [&](const Broken& broken) {
        ++told;
        CHECK(broken.nic == 0);
        CHECK(broken.time_s == Approx(4));
        return Reaction{{}, "given up"};
    });
    CHECK(told == 1);
    CHECK(abort.status == Status::kAborted);
    CHECK(abort.reason == "given up");
    const auto rebind =
        run(cluster, {at(4, 0, 0)}, [](const Broken&) { return Reaction{Binding{{0, 0, 1, 2, 5, 1}}, {}}; });
    CHECK(rebind.out_payload[2] == Approx(600).epsilon(0.01));
    CHECK(rebind.out_payload[1] == 0);
    const auto leave = run(cluster, {at(4, 0, 0)}, [](const Broken&) { return Reaction{}; });
    CHECK(leave.out_payload[1] == Approx(600).epsilon(0.01));
}

TEST_CASE("flow: a rebinding to a NIC of another server is refused") {
    CHECK_THROWS_AS(run(small_cluster(2, 2, 100), {at(4, 0, 0)},
                        [](const Broken&) { return Reaction{Binding{{0, 0, 1, 2, 3, 1}}, {}}; }),
                    std::invalid_argument);
}

TEST_CASE("flow: limits of time and steps end a run that waits for ever") {
    Cluster cluster = small_cluster(2, 2, 100);
    cluster.resume_delay_s = 1e12;
    const Outcome out = run(cluster, {at(4, 0, 0)}, {}, {1000, 1'000'000});
    CHECK(out.status == Status::kUnfinished);
    CHECK(out.reason.find("pass 0 (its connection is down)") != std::string::npos);
    CHECK(run(small_cluster(2, 1, 100), {}, {}, {1e9, 0}).status == Status::kUnfinished);
}

TEST_CASE("flow: links without limit take no time") {
    Cluster cluster = small_cluster(1, 1, 100);
    cluster.ranks.push_back({0, 0, kUnlimited});
    const Outcome out = run_flow(cluster, one_hop(1000), {}, {}, {}, {});
    CHECK(out.status == Status::kDone);
    CHECK(out.elapsed_s < 1e-9);
}

TEST_CASE("flow: an event by bytes comes when the busier direction has counted them") {
    const Outcome out = run(small_cluster(2, 1, 100), {{1, 0.5, 0, 300}});
    CHECK(out.event_time_s[0] == Approx(3));
    CHECK(out.elapsed_s == Approx(3 + 700 / 50.0));
}

TEST_CASE("flow: several events by bytes on one NIC come in the order of their counts") {
    const Outcome out = run(small_cluster(2, 1, 100), {{0, 1, 0, 500}, {0, 0.5, 0, 200}, {0, 0.25, 0, 5000}});
    CHECK(out.event_time_s[1] == Approx(2));
    CHECK(out.event_time_s[0] == Approx(2 + 300 / 50.0));
    CHECK(std::isnan(out.event_time_s[2]));
}

TEST_CASE("flow: an event on a NIC that does not exist is refused") {
    CHECK_THROWS_WITH_AS(run(small_cluster(2, 1, 100), {at(0, 2, 0)}), "an event names NIC 2, which does not exist",
                         std::invalid_argument);
    CHECK_THROWS_AS(run(small_cluster(2, 1, 100), {at(0, -1, 0)}), std::invalid_argument);
}

TEST_CASE("flow: passes of a channel run in order, those of others beside it in proportion to their weights") {
    // Channel 0: 600 then 200 bytes, channel 1: 200 bytes, all from NIC 0 at 100 bytes/s. Weights 600 : 200 share it 75
    // : 25, so both end at 8 s; the 200 bytes that wait for their turn take 2 s more.
    Schedule schedule{2, 600, 1, {{0, 1}}, {chain(0, 0, 600, 1), chain(0, 0, 200, 1), chain(1, 0, 200, 1)}};
    const Outcome out =
        run_flow(small_cluster(2, 1, 100), schedule, {{0, 0, 1, 0, 1, 1}, {1, 0, 1, 0, 1, 1}}, {}, {}, {});
    CHECK(out.pass_end_s[0] == Approx(8));
    CHECK(out.pass_end_s[2] == Approx(8));
    CHECK(out.pass_start_s[1] == Approx(8));
    CHECK(out.pass_end_s[1] == Approx(10));
}

}  // namespace
}  // namespace simai
