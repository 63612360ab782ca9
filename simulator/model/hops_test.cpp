#include "model/hops.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "testing/small_cluster.hpp"

namespace simai {
namespace {

using doctest::Approx;
using testing::chain;
using testing::one_hop;
using testing::small_cluster;

// 2 servers x 2 ranks (NUMA 0 and 1) x 1 NIC (NUMA 1), with a host bridge.
Cluster two_numa_nodes() {
    Cluster cluster = small_cluster(2, 1, 100);
    cluster.ranks = {{0, 0, 500}, {0, 1, 500}, {1, 0, 500}, {1, 1, 500}};
    for (Nic& nic : cluster.nics) nic.numa = 1;
    cluster.bridge_rate = {50, 50};
    return cluster;
}

TEST_CASE("hops: equal (channel, source, destination) of several passes are one connection") {
    Pass back = chain(0, 1, 10, 2);
    const Schedule schedule{2, 10, 1, {{0, 1}, {0, 1, 0}}, {chain(0, 0, 10, 1), chain(1, 0, 10, 1), back}};
    const Binding rows{{0, 0, 1, 0, 1, 1}, {1, 0, 1, 0, 1, 1}, {0, 1, 0, 1, 0, 1}};
    const Cluster cluster = small_cluster(2, 1, 100);
    const Hops hops(cluster, schedule, rows);
    CHECK(hops.count() == 3);
    CHECK(hops.of(0, 0) == hops.of(2, 0));
    CHECK(hops.of(0, 0) != hops.of(1, 0));
    CHECK(hops.at(hops.of(2, 1)).src == 1);
}

TEST_CASE("hops: a closed route has a hop from its end to its start") {
    Pass pass = chain(0, 0, 10, 2);
    pass.cyclic = true;
    const Schedule schedule{2, 10, 1, {{0, 1}}, {pass}};
    const Cluster cluster = small_cluster(2, 1, 100);
    const Hops hops(cluster, schedule, {{0, 0, 1, 0, 1, 1}, {0, 1, 0, 1, 0, 1}});
    CHECK(hops.of_pass(0).size() == 2);
    CHECK(hops.at(hops.of(0, 1)).dst == 0);
}

TEST_CASE("hops: inside a server bytes take the links of both ranks and no NIC") {
    const Cluster cluster = two_numa_nodes();
    const Hops hops(cluster, Schedule{4, 10, 2, {{0, 1}}, {chain(0, 0, 10, 1)}}, {});
    const Ports ports(cluster);
    const LanePath path = hops.path(hops.at(0), hops.at(0).lanes[0]);
    REQUIRE(path.count == 2);
    CHECK(path.use[0].port == ports.link_out(0));
    CHECK(path.use[1].port == ports.link_in(1));
    CHECK(path.use[0].bytes_per_byte == 2);  // of the wire protocol
}

TEST_CASE("hops: only the end whose GPU is on another node than its NIC crosses the bridge") {
    const Cluster cluster = two_numa_nodes();
    const Hops hops(cluster, Schedule{4, 10, 1, {{0, 3}}, {chain(0, 0, 10, 1)}}, {{0, 0, 3, 0, 1, 1}});
    const Ports ports(cluster);
    const LanePath path = hops.path(hops.at(0), hops.at(0).lanes[0]);
    REQUIRE(path.count == 3);
    CHECK(path.use[0].port == ports.nic_out(0));
    CHECK(path.use[1].port == ports.bridge_out(0));
    CHECK(path.use[2].port == ports.nic_in(1));
}

TEST_CASE("hops: NICs on different leaf switches meet over the spine, by an uplink and a downlink") {
    Cluster cluster = two_numa_nodes();
    cluster.uplink_rate = {30, 40};
    cluster.nics[0].header = 41;
    const Ports ports(cluster);
    const Binding row{{0, 0, 2, 0, 1, 1}};
    for (const auto& [leaf, over_spine] : {std::pair{1, true}, std::pair{0, false}, std::pair{-1, false}}) {
        cluster.nics[0].leaf = 0;
        cluster.nics[1].leaf = leaf;
        const Hops hops(cluster, Schedule{4, 10, 1, {{0, 2}}, {chain(0, 0, 10, 1)}}, row);
        const LanePath path = hops.path(hops.at(0), hops.at(0).lanes[0]);
        REQUIRE(path.count == (over_spine ? 6 : 4));
        CHECK(path.senders == path.count / 2);
        if (!over_spine) continue;
        const int expected[] = {ports.nic_out(0),  ports.bridge_out(0), ports.uplink(0),
                                ports.downlink(1), ports.nic_in(1),     ports.bridge_in(1)};
        for (int i = 0; i < 6; ++i) CHECK(path.use[i].port == expected[i]);
        CHECK(path.use[2].bytes_per_byte == path.use[0].bytes_per_byte);  // packets with their headers
        CHECK(path.use[2].bytes_per_byte == Approx(1 + 41.0 / 4096));
    }
}

TEST_CASE("hops: packets have the smaller MTU of both ends, and the larger header: 1 + 60/1000") {
    Cluster cluster = small_cluster(2, 1, 100);
    cluster.nics[0].mtu = 4000;
    cluster.nics[0].header = 60;
    cluster.nics[1].mtu = 1000;
    cluster.nics[1].header = 40;
    cluster.net_latency_s = 3;
    const Hops hops(cluster, one_hop(10), {{0, 0, 1, 0, 1, 1}});
    const LanePath path = hops.path(hops.at(0), hops.at(0).lanes[0]);
    CHECK(path.use[0].bytes_per_byte == Approx(1.06));
    CHECK(path.latency_s == 3);
}

TEST_CASE("hops: bindings that cannot be are refused with channel and hop") {
    const Cluster cluster = small_cluster(2, 2, 100);
    const auto bind = [&](const Binding& rows) { Hops(cluster, one_hop(10), rows); };
    const std::string hop = "channel 0, hop 0 -> 1: ";
    CHECK_NOTHROW(bind({{0, 0, 1, 0, 2, 0.25}, {0, 0, 1, 1, 2, 0.75}}));
    const Hops unbound(cluster, one_hop(10), {});
    CHECK_THROWS_WITH(unbound.require_bound(0, {10}), (hop + "crosses servers but no NIC is bound to it").c_str());
    CHECK_NOTHROW(unbound.require_bound(0, {0}));  // a hop that no section makes needs no NIC
    CHECK_THROWS_WITH(bind({{0, 0, 1, 0, 4, 1}}), (hop + "bound to a NIC that does not exist").c_str());
    CHECK_THROWS_WITH(bind({{0, 0, 1, -1, 2, 1}}), (hop + "bound to a NIC that does not exist").c_str());
    CHECK_THROWS_WITH(bind({{0, 0, 1, 2, 0, 1}}), (hop + "bound to a NIC of another server").c_str());
    CHECK_THROWS_WITH(bind({{0, 0, 1, 0, 2, 0.5}}), (hop + "shares must add up to 1").c_str());
    CHECK_THROWS_WITH(bind({{0, 0, 1, 0, 2, 0}}), (hop + "a share must be > 0").c_str());
    CHECK_THROWS_AS(Hops(cluster, Schedule{3, 10, 1, {}, {}}, {}), std::invalid_argument);
}

TEST_CASE("hops: rails that no switch joins cannot be bound together, now or later") {
    Cluster cluster = small_cluster(2, 2, 100);
    cluster.rails_connected = false;
    CHECK_THROWS_WITH(
        Hops(cluster, one_hop(10), {{0, 0, 1, 0, 3, 1}}),
        "channel 0, hop 0 -> 1: server0.nic0 and server1.nic1 are on different rails, which no switch connects");
    Hops hops(cluster, one_hop(10), {{0, 0, 1, 0, 2, 1}});
    CHECK_THROWS_AS(hops.rebind(Binding{{0, 0, 1, 1, 2, 1}}), std::invalid_argument);
    CHECK(hops.at(0).lanes[0].src_nic == 0);  // as it was
}

TEST_CASE("hops: a rebinding changes the hops that it names and returns them") {
    const Schedule schedule{2, 10, 1, {{0, 1}, {1, 0}}, {chain(0, 0, 10, 1), chain(1, 1, 10, 1)}};
    const Cluster cluster = small_cluster(2, 2, 100);
    Hops hops(cluster, schedule, {{0, 0, 1, 0, 2, 1}, {1, 1, 0, 2, 0, 1}});
    const auto changed = hops.rebind(Binding{{1, 1, 0, 3, 1, 0.5}, {1, 1, 0, 2, 0, 0.5}, {7, 0, 1, 0, 2, 1}});
    CHECK(changed == std::vector<int>{hops.of(1, 0)});
    CHECK(hops.at(hops.of(1, 0)).lanes.size() == 2);
    CHECK(hops.at(hops.of(0, 0)).lanes.size() == 1);
}

}  // namespace
}  // namespace simai
