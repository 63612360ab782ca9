#include "model/hops.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>

namespace simai {
namespace {

using Key = std::tuple<int, int, int>;  // channel, source, destination

struct KeyHash {
    std::size_t operator()(const Key& k) const {
        const auto mix = static_cast<std::uint64_t>(std::get<0>(k)) * 0x9E3779B97F4A7C15ULL ^
                         static_cast<std::uint64_t>(std::get<1>(k)) << 32 ^ static_cast<std::uint64_t>(std::get<2>(k));
        return std::hash<std::uint64_t>{}(mix);
    }
};

std::string describe(const Hop& hop) {
    return "channel " + std::to_string(hop.channel) + ", hop " + std::to_string(hop.src) + " -> " +
           std::to_string(hop.dst);
}

}  // namespace

Hops::Hops(const Cluster& cluster, const Schedule& schedule, const Binding& binding)
    : cluster_(cluster), ports_(cluster), wire_factor_(schedule.wire_factor) {
    if (schedule.n_ranks > static_cast<int>(cluster.ranks.size()))
        throw std::invalid_argument("the schedule has more ranks than the cluster has GPUs");
    std::unordered_map<Key, std::vector<Lane>, KeyHash> bound;
    bound.reserve(binding.size());
    for (const BindingRow& row : binding)
        bound[{row.channel, row.src, row.dst}].push_back({row.src_nic, row.dst_nic, row.share});

    std::unordered_map<Key, int, KeyHash> hop_of;
    std::map<std::pair<int, std::pair<int, bool>>, int> index_of;
    pass_index_.reserve(schedule.passes.size());
    for (const Pass& pass : schedule.passes) {
        const auto [entry, fresh] =
            index_of.try_emplace({pass.channel, {pass.route, pass.cyclic}}, static_cast<int>(index_.size()));
        pass_index_.push_back(entry->second);
        if (!fresh) continue;
        const std::vector<int>& route = schedule.routes[pass.route];
        const int n = schedule.positions(pass);
        std::vector<int> ids(std::max(n, 0));
        for (int h = 0; h < n; ++h) {
            const Key key{pass.channel, route[h], route[(h + 1) % route.size()]};
            const auto [found, created] = hop_of.try_emplace(key, static_cast<int>(hops_.size()));
            ids[h] = found->second;
            if (!created) continue;
            Hop hop{std::get<0>(key), std::get<1>(key), std::get<2>(key), {}};
            if (cluster.ranks[hop.src].server == cluster.ranks[hop.dst].server) {
                hop.lanes = {Lane{}};
            } else {
                const auto lanes = bound.find(key);
                if (lanes != bound.end()) hop.lanes = checked(hop, lanes->second);
            }
            hops_.push_back(std::move(hop));
        }
        index_.push_back(std::move(ids));
    }
}

void Hops::require_bound(int pass, const std::vector<std::int64_t>& hop_bytes) const {
    for (std::size_t position = 0; position < hop_bytes.size(); ++position) {
        const Hop& hop = hops_[of(pass, static_cast<int>(position))];
        if (hop_bytes[position] > 0 && hop.lanes.empty())
            throw std::invalid_argument(describe(hop) + ": crosses servers but no NIC is bound to it");
    }
}

std::vector<Lane> Hops::checked(const Hop& hop, std::vector<Lane> lanes) const {
    double sum = 0;
    for (const Lane& lane : lanes) {
        const int n = static_cast<int>(cluster_.nics.size());
        if (lane.src_nic < 0 || lane.src_nic >= n || lane.dst_nic < 0 || lane.dst_nic >= n)
            throw std::invalid_argument(describe(hop) + ": bound to a NIC that does not exist");
        const Nic& src = cluster_.nics[lane.src_nic];
        const Nic& dst = cluster_.nics[lane.dst_nic];
        if (src.server != cluster_.ranks[hop.src].server || dst.server != cluster_.ranks[hop.dst].server)
            throw std::invalid_argument(describe(hop) + ": bound to a NIC of another server");
        if (!cluster_.rails_connected && src.rail != dst.rail)
            throw std::invalid_argument(describe(hop) + ": " + src.name + " and " + dst.name +
                                        " are on different rails, which no switch connects");
        if (!(lane.share > 0)) throw std::invalid_argument(describe(hop) + ": a share must be > 0");
        sum += lane.share;
    }
    if (std::abs(sum - 1) > 1e-9) throw std::invalid_argument(describe(hop) + ": shares must add up to 1");
    return lanes;
}

LanePath Hops::path(const Hop& hop, const Lane& lane) const {
    LanePath path;
    const auto add = [&path](int port, double factor) { path.use[path.count++] = {port, factor}; };
    if (!lane.crosses_network()) {
        add(ports_.link_out(hop.src), wire_factor_);
        path.senders = path.count;
        add(ports_.link_in(hop.dst), wire_factor_);
        path.latency_s = cluster_.ranks[hop.src].link_latency_s;
        return path;
    }
    const Rank& from = cluster_.ranks[hop.src];
    const Rank& to = cluster_.ranks[hop.dst];
    const Nic& out = cluster_.nics[lane.src_nic];
    const Nic& in = cluster_.nics[lane.dst_nic];
    // The two ends agree on the smaller MTU; each packet of it carries one header.
    const double wire = wire_factor_ * (1 + std::max(out.header, in.header) / std::min(out.mtu, in.mtu));
    add(ports_.nic_out(lane.src_nic), wire);
    if (from.numa != out.numa && std::isfinite(cluster_.bridge_rate[from.server]))
        add(ports_.bridge_out(from.server), wire_factor_);
    const bool over_spine = out.leaf != in.leaf && out.leaf >= 0 && in.leaf >= 0;
    if (over_spine) add(ports_.uplink(out.leaf), wire);
    path.senders = path.count;
    if (over_spine) add(ports_.downlink(in.leaf), wire);
    add(ports_.nic_in(lane.dst_nic), wire);
    if (to.numa != in.numa && std::isfinite(cluster_.bridge_rate[to.server]))
        add(ports_.bridge_in(to.server), wire_factor_);
    path.latency_s = cluster_.net_latency_s;
    return path;
}

void Hops::rebind(int hop, std::vector<Lane> lanes) { hops_[hop].lanes = checked(hops_[hop], std::move(lanes)); }

std::vector<int> Hops::rebind(const Binding& rows) {
    std::map<Key, std::vector<Lane>> wanted;
    for (const BindingRow& row : rows)
        wanted[{row.channel, row.src, row.dst}].push_back({row.src_nic, row.dst_nic, row.share});
    std::vector<int> changed;
    for (int h = 0; h < count(); ++h) {
        const auto found = wanted.find({hops_[h].channel, hops_[h].src, hops_[h].dst});
        if (found == wanted.end()) continue;
        rebind(h, found->second);
        changed.push_back(h);
    }
    return changed;
}

}  // namespace simai
