#include "model/cluster.hpp"

#include <doctest/doctest.h>

#include <set>

#include "testing/small_cluster.hpp"

namespace simai {
namespace {

using testing::small_cluster;

TEST_CASE("cluster: every limited resource is a port of its own, numbered from 0 without a gap") {
    Cluster cluster = small_cluster(3, 2, 100);
    cluster.uplink_rate = {30, 40};
    const Ports ports(cluster);
    CHECK(port_rates(cluster)[ports.downlink(1)] == 40);
    std::set<int> seen;
    for (int i = 0; i < 6; ++i) seen.insert({ports.nic_out(i), ports.nic_in(i)});
    for (int r = 0; r < 3; ++r) seen.insert({ports.link_out(r), ports.link_in(r)});
    for (int s = 0; s < 3; ++s) seen.insert({ports.bridge_out(s), ports.bridge_in(s)});
    for (int l = 0; l < 2; ++l) seen.insert({ports.uplink(l), ports.downlink(l)});
    CHECK(static_cast<int>(seen.size()) == ports.count());
    CHECK(*seen.begin() == 0);
    CHECK(*seen.rbegin() == ports.count() - 1);
}

TEST_CASE("cluster: what cannot be is refused") {
    const auto spoilt = [](const auto& spoil) {
        Cluster cluster = small_cluster(2, 2, 100);
        spoil(cluster);
        return cluster;
    };
    CHECK_NOTHROW(small_cluster(2, 2, 100).validate());
    CHECK_THROWS_WITH(spoilt([](Cluster& c) { c.nics[1].rate = 0; }).validate(),
                      "server0.nic1: line rate >= rate > 0 wanted");
    CHECK_THROWS_WITH(spoilt([](Cluster& c) { c.nics[0].server = 2; }).validate(), "server0.nic0: no such server");
    CHECK_THROWS_WITH(spoilt([](Cluster& c) { c.nics[1].backups = {2}; }).validate(),
                      "server0.nic1: a backup NIC must be on the same server");
    CHECK_THROWS_WITH(spoilt([](Cluster& c) { c.nics[1].mtu = 0; }).validate(), "server0.nic1: MTU must be >= 1 byte");
    CHECK_THROWS_WITH(spoilt([](Cluster& c) { c.nics[1].leaf = 0; }).validate(), "server0.nic1: no such leaf switch");
    CHECK_THROWS_WITH(spoilt([](Cluster& c) { c.uplink_rate = {0}; }).validate(),
                      "the rate between a leaf switch and the spine must be > 0");
    CHECK_THROWS_WITH(spoilt([](Cluster& c) { c.ranks[0].server = -1; }).validate(),
                      "a rank names a server that does not exist");
    CHECK_THROWS_WITH(spoilt([](Cluster& c) { c.resume_delay_s = -1; }).validate(),
                      "latencies and delays must be >= 0");
    CHECK_THROWS_WITH(spoilt([](Cluster& c) { c.backups_per_nic = 0; }).validate(), "backups_per_nic must be >= 1");
}

}  // namespace
}  // namespace simai
