// The connections that a schedule needs: every (channel, source, destination) with the lanes it runs on.
#pragma once

#include <array>
#include <vector>

#include "model/cluster.hpp"
#include "model/schedule.hpp"

namespace simai {

// One NIC pair (or the link inside a server, nic = -1) that carries `share` of a hop's traffic.
struct Lane {
    int src_nic = -1;
    int dst_nic = -1;
    double share = 1;
    bool crosses_network() const { return src_nic >= 0; }
    bool uses(int nic) const { return src_nic == nic || dst_nic == nic; }
};

// A port that a lane occupies and the bytes it takes there for each payload byte.
struct PortUse {
    int port = 0;
    double bytes_per_byte = 1;
};

// Ports in the order in which the bytes meet them; senders first.
struct LanePath {
    std::array<PortUse, 6> use{};
    int count = 0;
    int senders = 0;  // how many of them are on the sender's side
    double latency_s = 0;
};

struct Hop {
    int channel = 0;
    int src = 0;
    int dst = 0;
    std::vector<Lane> lanes;
};

class Hops {
  public:
    // Throws std::invalid_argument where a hop between servers has an impossible binding.
    Hops(const Cluster& cluster, const Schedule& schedule, const Binding& binding);

    int count() const { return static_cast<int>(hops_.size()); }
    const Hop& at(int hop) const { return hops_[hop]; }
    int of(int pass, int position) const { return index_[pass_index_[pass]][position]; }
    const std::vector<int>& of_pass(int pass) const { return index_[pass_index_[pass]]; }
    LanePath path(const Hop& hop, const Lane& lane) const;

    // Throws std::invalid_argument that names a hop between servers which carries bytes of the pass but has no lane.
    // A route may have hops that no section makes; those need none.
    void require_bound(int pass, const std::vector<std::int64_t>& hop_bytes) const;

    void rebind(int hop, std::vector<Lane> lanes);
    // Replaces the lanes of every hop that the rows name; returns those hops.
    std::vector<int> rebind(const Binding& rows);

  private:
    std::vector<Lane> checked(const Hop& hop, std::vector<Lane> lanes) const;

    const Cluster& cluster_;
    Ports ports_;
    double wire_factor_;
    std::vector<Hop> hops_;
    std::vector<std::vector<int>> index_;  // per distinct (channel, route): hop ids by position
    std::vector<int> pass_index_;
};

}  // namespace simai
