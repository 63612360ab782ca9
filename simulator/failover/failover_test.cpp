#include "failover/failover.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "testing/small_cluster.hpp"

namespace simai {
namespace {

using doctest::Approx;
using testing::small_cluster;

// 2 servers x 3 NICs: 0, 1, 2 and 3, 4, 5; NIC j is on rail j mod 3; backups are the next ones of the server.
Cluster three_nics() { return small_cluster(2, 3, 100); }

NicStates knowing(const Cluster& cluster, const std::vector<int>& down) {
    NicStates states(cluster);
    for (int nic : down) {
        states.set(nic, 0);
        states.learn_down(nic);
    }
    return states;
}

std::vector<Lane> moved(const Cluster& cluster, const std::vector<int>& down, const std::vector<Lane>& lanes) {
    const auto result = migrate(cluster, knowing(cluster, down), Hop{0, 0, 1, lanes});
    REQUIRE(result);
    return *result;
}

TEST_CASE("migrate: a lane over NICs that work stays") {
    const auto lanes = moved(three_nics(), {1, 2}, {{0, 3, 1}});
    REQUIRE(lanes.size() == 1);
    CHECK(lanes[0].src_nic == 0);
    CHECK(lanes[0].dst_nic == 3);
}

TEST_CASE("migrate: only the dead end moves, to its first backup that is not known to be down") {
    const auto source = moved(three_nics(), {0}, {{0, 3, 1}});
    CHECK(source[0].src_nic == 1);
    CHECK(source[0].dst_nic == 3);
    const auto target = moved(three_nics(), {3, 4}, {{0, 3, 1}});
    CHECK(target[0].src_nic == 0);
    CHECK(target[0].dst_nic == 5);
}

TEST_CASE("migrate: a NIC that is down but not known to be is still tried") {
    const Cluster cluster = three_nics();
    NicStates states = knowing(cluster, {0});
    states.set(1, 0);
    CHECK((*migrate(cluster, states, Hop{0, 0, 1, {{0, 3, 1}}}))[0].src_nic == 1);
}

TEST_CASE("migrate: backups_per_nic backups share the traffic evenly, as far as there are that many") {
    Cluster cluster = three_nics();
    cluster.backups_per_nic = 2;
    const auto lanes = moved(cluster, {0}, {{0, 3, 0.8}, {2, 5, 0.2}});
    REQUIRE(lanes.size() == 3);
    CHECK(lanes[0].src_nic == 1);
    CHECK(lanes[0].share == Approx(0.4));
    CHECK(lanes[1].src_nic == 2);
    CHECK(lanes[1].share == Approx(0.4));
    CHECK(lanes[2].dst_nic == 5);
    CHECK(moved(cluster, {0, 1}, {{0, 3, 1}}).size() == 1);
}

TEST_CASE("migrate: what lands on a pair that the hop has already adds to its share") {
    const auto lanes = moved(three_nics(), {0}, {{0, 3, 0.5}, {1, 3, 0.5}});
    REQUIRE(lanes.size() == 1);
    CHECK(lanes[0].share == Approx(1));
}

TEST_CASE("migrate: both ends dead: the backups are paired one to one") {
    Cluster cluster = three_nics();
    cluster.backups_per_nic = 2;
    const auto lanes = moved(cluster, {0, 3}, {{0, 3, 1}});
    REQUIRE(lanes.size() == 2);
    CHECK(lanes[0].src_nic == 1);
    CHECK(lanes[0].dst_nic == 4);
    CHECK(lanes[1].src_nic == 2);
    CHECK(lanes[1].dst_nic == 5);
}

TEST_CASE("migrate: on separate rails both ends move to one rail that works on both") {
    Cluster cluster = three_nics();
    cluster.rails_connected = false;
    const auto one = moved(cluster, {0}, {{0, 3, 1}});
    CHECK(one[0].src_nic == 1);
    CHECK(one[0].dst_nic == 4);
    const auto crosswise = moved(cluster, {0, 4}, {{0, 3, 1}});
    CHECK(crosswise[0].src_nic == 2);
    CHECK(crosswise[0].dst_nic == 5);
    const auto far_end = moved(cluster, {3}, {{0, 3, 1}});
    CHECK(far_end[0].src_nic == 1);
    CHECK(far_end[0].dst_nic == 4);
    CHECK_FALSE(migrate(cluster, knowing(cluster, {0, 4, 2}), Hop{0, 0, 1, {{0, 3, 1}}}));
}

TEST_CASE("migrate: nothing where no NIC is left") {
    const Cluster cluster = three_nics();
    CHECK_FALSE(migrate(cluster, knowing(cluster, {0, 1, 2}), Hop{0, 0, 1, {{0, 3, 1}}}));
    CHECK_FALSE(migrate(cluster, knowing(cluster, {3, 4, 5}), Hop{0, 0, 1, {{0, 3, 1}}}));
}

TEST_CASE("migrate: links inside a server have nothing to move") {
    const auto lanes = moved(three_nics(), {0, 1, 2}, {Lane{}});
    CHECK_FALSE(lanes[0].crosses_network());
}

TEST_CASE("migrate: a repaired NIC is known to work again") {
    const Cluster cluster = three_nics();
    NicStates states = knowing(cluster, {0});
    CHECK_FALSE(states.works(Lane{0, 3, 1}));
    states.set(0, 0.5);
    CHECK(states.works(Lane{0, 3, 1}));
    CHECK_FALSE(states.known_down(0));
}

TEST_CASE("migrate: a whole binding moves hop by hop, or names the ranks that are cut off") {
    const Cluster cluster = three_nics();
    const Binding binding{{0, 0, 1, 0, 3, 1}, {1, 0, 1, 1, 4, 1}, {0, 1, 0, 3, 0, 1}};
    const Binding after = migrate(cluster, binding, {true, false, false, false, false, false});
    REQUIRE(after.size() == 3);
    CHECK(after[0].src_nic == 1);
    CHECK(after[1].dst_nic == 1);  // channel 0, hop 1 -> 0
    CHECK(after[2].src_nic == 1);  // channel 1 keeps its own
    CHECK_THROWS_WITH_AS(migrate(cluster, binding, {true, true, true, false, false, false}),
                         "no NIC is left between server0 (rank 0) and server1 (rank 1)", std::runtime_error);
    CHECK_THROWS_AS(migrate(cluster, binding, {true}), std::invalid_argument);
}

TEST_CASE("events: one on a NIC that does not exist is refused") {
    CHECK_NOTHROW(validate(three_nics(), {{5, 0, 0, -1}}));
    CHECK_THROWS_AS(validate(three_nics(), {{6, 0, 0, -1}}), std::invalid_argument);
    CHECK_THROWS_AS(validate(three_nics(), {{-1, 0, 0, -1}}), std::invalid_argument);
}

}  // namespace
}  // namespace simai
