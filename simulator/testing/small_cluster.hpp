// Small clusters and schedules for the tests beside the code.
#pragma once

#include <string>
#include <vector>

#include "model/cluster.hpp"
#include "model/schedule.hpp"

namespace simai::testing {

// Servers of one rank and `nics` NICs of `rate` each, NIC j on rail j, each backed up by the next ones of its server.
inline Cluster small_cluster(int servers, int nics, double rate) {
    Cluster cluster;
    for (int s = 0; s < servers; ++s) {
        for (int j = 0; j < nics; ++j) {
            Nic nic;
            nic.name = "server" + std::to_string(s) + ".nic" + std::to_string(j);
            nic.server = s;
            nic.rail = j;
            nic.rate = nic.line_rate = rate;
            for (int k = 1; k < nics; ++k) nic.backups.push_back(s * nics + (j + k) % nics);
            cluster.nics.push_back(nic);
        }
        cluster.ranks.push_back({s, 0, kUnlimited});
        cluster.bridge_rate.push_back(kUnlimited);
    }
    return cluster;
}

// A pass of one section over the whole of a route that does not close.
inline Pass chain(int channel, int route, std::int64_t bytes, int hops, int chunks = 1) {
    Pass pass;
    pass.channel = channel;
    pass.route = route;
    pass.copy_hops = hops;
    pass.chunks = chunks;
    pass.weight = static_cast<double>(bytes);
    pass.sections = {{0, bytes, 0}};
    return pass;
}

// `bytes` from rank 0 to rank 1.
inline Schedule one_hop(std::int64_t bytes, int chunks = 1) {
    return {2, bytes, 1, {{0, 1}}, {chain(0, 0, bytes, 1, chunks)}};
}

}  // namespace simai::testing
