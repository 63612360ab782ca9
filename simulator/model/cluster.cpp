#include "model/cluster.hpp"

#include <stdexcept>

namespace simai {

void Cluster::validate() const {
    const int servers = static_cast<int>(bridge_rate.size());
    const int leaves = static_cast<int>(uplink_rate.size());
    const auto bad = [](const std::string& what) { throw std::invalid_argument(what); };
    for (const Nic& nic : nics) {
        if (nic.server < 0 || nic.server >= servers) bad(nic.name + ": no such server");
        if (!(nic.rate > 0) || !(nic.line_rate >= nic.rate)) bad(nic.name + ": line rate >= rate > 0 wanted");
        if (!(nic.burst >= 0) || !(nic.header >= 0)) bad(nic.name + ": burst and header must be >= 0");
        if (nic.leaf < -1 || nic.leaf >= leaves) bad(nic.name + ": no such leaf switch");
        if (!(nic.mtu >= 1)) bad(nic.name + ": MTU must be >= 1 byte");
        for (int backup : nic.backups) {
            if (backup < 0 || backup >= static_cast<int>(nics.size()) || nics[backup].server != nic.server)
                bad(nic.name + ": a backup NIC must be on the same server");
        }
    }
    for (const Rank& rank : ranks) {
        if (rank.server < 0 || rank.server >= servers) bad("a rank names a server that does not exist");
        if (!(rank.link_rate > 0)) bad("the rate inside a server must be > 0");
        if (!(rank.link_latency_s >= 0)) bad("the latency inside a server must be >= 0");
    }
    for (double rate : bridge_rate) {
        if (!(rate > 0)) bad("the rate of a host bridge must be > 0");
    }
    for (double rate : uplink_rate) {
        if (!(rate > 0)) bad("the rate between a leaf switch and the spine must be > 0");
    }
    if (backups_per_nic < 1) bad("backups_per_nic must be >= 1");
    if (!(base_latency_s >= 0) || !(net_latency_s >= 0) || !(resume_delay_s >= 0))
        bad("latencies and delays must be >= 0");
}

std::vector<double> port_rates(const Cluster& cluster) {
    const Ports ports(cluster);
    std::vector<double> rate(ports.count(), kUnlimited);
    for (int i = 0; i < ports.nics; ++i) rate[ports.nic_out(i)] = rate[ports.nic_in(i)] = cluster.nics[i].rate;
    for (int r = 0; r < ports.ranks; ++r) rate[ports.link_out(r)] = rate[ports.link_in(r)] = cluster.ranks[r].link_rate;
    for (int s = 0; s < ports.servers; ++s)
        rate[ports.bridge_out(s)] = rate[ports.bridge_in(s)] = cluster.bridge_rate[s];
    for (int l = 0; l < ports.leaves; ++l) rate[ports.uplink(l)] = rate[ports.downlink(l)] = cluster.uplink_rate[l];
    return rate;
}

}  // namespace simai
