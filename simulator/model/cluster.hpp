// The static cluster: servers, GPUs (ranks), NICs, and the ports that limit what moves between them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace simai {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// One network interface. Rates are bytes per second on the wire, per direction (full duplex).
struct Nic {
    std::string name;  // "server0.mlx5_2", for messages only
    int server = 0;
    int rail = 0;
    int numa = 0;
    double rate = 0;           // sustained
    double line_rate = 0;      // while the token bucket has tokens
    double burst = 0;          // token bucket, bytes; 0: none
    double mtu = 4096;         // payload bytes of a full packet
    double header = 0;         // bytes on the wire beside the payload of each packet
    std::vector<int> backups;  // NICs of the same server, in the order in which they take over
    int leaf = -1;             // the leaf switch it hangs on; -1: its switch is no limit
};

// One GPU, which is one rank of every collective.
struct Rank {
    int server = 0;
    int numa = 0;
    double link_rate = kUnlimited;  // to the other GPUs of its server, per direction
    double link_latency_s = 0;      // one hop to another GPU of its server
};

struct Cluster {
    std::vector<Nic> nics;
    std::vector<Rank> ranks;
    std::vector<double> bridge_rate;    // per server and direction: what crosses between NUMA nodes
    bool rails_connected = true;        // false: one switch per rail, a NIC reaches only its own rail
    int backups_per_nic = 1;            // how many backups share the traffic of a dead NIC
    double base_latency_s = 0;          // before the first byte of a collective moves
    double net_latency_s = 0;           // one hop between servers, first byte in to first byte out
    double resume_delay_s = 0;          // detection + notice to the other end + migration
    int window_chunks = 0;              // chunks in flight per connection; 0: no limit
    std::vector<double> uplink_rate{};  // per leaf switch and direction: what it sends to and gets from the spine

    void validate() const;  // throws std::invalid_argument
};

// Every limited resource is a port with a number: NIC out/in, GPU link out/in, NUMA bridge out/in, leaf switch
// to and from the spine.
struct Ports {
    explicit Ports(const Cluster& c)
        : nics(static_cast<int>(c.nics.size())),
          ranks(static_cast<int>(c.ranks.size())),
          servers(static_cast<int>(c.bridge_rate.size())),
          leaves(static_cast<int>(c.uplink_rate.size())) {}
    int nic_out(int nic) const { return 2 * nic; }
    int nic_in(int nic) const { return 2 * nic + 1; }
    int link_out(int rank) const { return 2 * (nics + rank); }
    int link_in(int rank) const { return 2 * (nics + rank) + 1; }
    int bridge_out(int server) const { return 2 * (nics + ranks + server); }
    int bridge_in(int server) const { return 2 * (nics + ranks + server) + 1; }
    int uplink(int leaf) const { return 2 * (nics + ranks + servers + leaf); }
    int downlink(int leaf) const { return 2 * (nics + ranks + servers + leaf) + 1; }
    int count() const { return 2 * (nics + ranks + servers + leaves); }

    int nics, ranks, servers, leaves;
};

// Sustained rate of every port on the healthy cluster, in the numbering of Ports.
std::vector<double> port_rates(const Cluster& cluster);

}  // namespace simai
