#include "failover/failover.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

namespace simai {
namespace {

// The NICs that one end of a lane may use, best first: its own while it is not known to be down.
std::vector<int> candidates(const Cluster& cluster, const NicStates& states, int nic) {
    if (!states.known_down(nic)) return {nic};
    std::vector<int> alive;
    for (int backup : cluster.nics[nic].backups)
        if (!states.known_down(backup)) alive.push_back(backup);
    return alive;
}

// On a fabric of separate rails both ends must move together.
std::vector<Lane> pairs_on_rails(const Cluster& cluster, const NicStates& states, const Lane& lane) {
    std::vector<Lane> pairs;
    std::vector<int> sources{lane.src_nic};
    sources.insert(sources.end(), cluster.nics[lane.src_nic].backups.begin(), cluster.nics[lane.src_nic].backups.end());
    const int server = cluster.nics[lane.dst_nic].server;
    for (int src : sources) {
        if (states.known_down(src)) continue;
        for (int dst = 0; dst < static_cast<int>(cluster.nics.size()); ++dst) {
            const Nic& peer = cluster.nics[dst];
            if (peer.server == server && peer.rail == cluster.nics[src].rail && !states.known_down(dst))
                pairs.push_back({src, dst, 1});
        }
    }
    return pairs;
}

std::vector<Lane> pairs_anywhere(const Cluster& cluster, const NicStates& states, const Lane& lane) {
    const std::vector<int> sources = candidates(cluster, states, lane.src_nic);
    const std::vector<int> targets = candidates(cluster, states, lane.dst_nic);
    std::vector<Lane> pairs;
    if (sources.empty() || targets.empty()) return pairs;
    const std::size_t n = std::max(sources.size(), targets.size());
    for (std::size_t i = 0; i < n; ++i) pairs.push_back({sources[i % sources.size()], targets[i % targets.size()], 1});
    return pairs;
}

void add_share(std::vector<Lane>& lanes, const Lane& lane) {
    for (Lane& old : lanes) {
        if (old.src_nic == lane.src_nic && old.dst_nic == lane.dst_nic) {
            old.share += lane.share;
            return;
        }
    }
    lanes.push_back(lane);
}

}  // namespace

void validate(const Cluster& cluster, const std::vector<NicEvent>& events) {
    const int nics = static_cast<int>(cluster.nics.size());
    for (const NicEvent& event : events)
        if (event.nic < 0 || event.nic >= nics)
            throw std::invalid_argument("an event names NIC " + std::to_string(event.nic) + ", which does not exist");
}

std::optional<std::vector<Lane>> migrate(const Cluster& cluster, const NicStates& states, const Hop& hop) {
    std::vector<Lane> lanes;
    for (const Lane& lane : hop.lanes) {
        if (!lane.crosses_network() || (!states.known_down(lane.src_nic) && !states.known_down(lane.dst_nic))) {
            add_share(lanes, lane);
            continue;
        }
        std::vector<Lane> pairs =
            cluster.rails_connected ? pairs_anywhere(cluster, states, lane) : pairs_on_rails(cluster, states, lane);
        if (pairs.empty()) return std::nullopt;
        pairs.resize(std::min(pairs.size(), static_cast<std::size_t>(cluster.backups_per_nic)));
        for (Lane& pair : pairs) {
            pair.share = lane.share / static_cast<double>(pairs.size());
            add_share(lanes, pair);
        }
    }
    return lanes;
}

namespace {

std::string nothing_between(const Cluster& cluster, const Hop& hop) {
    const auto end = [&](int rank) {
        return "server" + std::to_string(cluster.ranks[rank].server) + " (rank " + std::to_string(rank) + ")";
    };
    return "no NIC is left between " + end(hop.src) + " and " + end(hop.dst);
}

}  // namespace

std::string no_nic_left(const Cluster& cluster, const Hop& hop, int last_nic) {
    return nothing_between(cluster, hop) + " after " + cluster.nics[last_nic].name + " went down";
}

Binding migrate(const Cluster& cluster, const Binding& binding, const std::vector<bool>& known_down) {
    if (known_down.size() != cluster.nics.size()) throw std::invalid_argument("migrate: one flag for each NIC wanted");
    NicStates states(cluster);
    for (std::size_t i = 0; i < known_down.size(); ++i) {
        if (!known_down[i]) continue;
        states.set(static_cast<int>(i), 0);
        states.learn_down(static_cast<int>(i));
    }
    std::map<std::tuple<int, int, int>, Hop> hops;
    for (const BindingRow& row : binding) {
        Hop& hop = hops[{row.channel, row.src, row.dst}];
        hop.channel = row.channel;
        hop.src = row.src;
        hop.dst = row.dst;
        hop.lanes.push_back({row.src_nic, row.dst_nic, row.share});
    }
    Binding moved;
    for (const auto& [key, hop] : hops) {
        const std::optional<std::vector<Lane>> lanes = migrate(cluster, states, hop);
        if (!lanes) throw std::runtime_error(nothing_between(cluster, hop));
        for (const Lane& lane : *lanes)
            moved.push_back({hop.channel, hop.src, hop.dst, lane.src_nic, lane.dst_nic, lane.share});
    }
    return moved;
}

}  // namespace simai
