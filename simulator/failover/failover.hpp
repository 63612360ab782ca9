// Which NICs work, which are known not to, and where the traffic of a dead one goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster.hpp"
#include "model/hops.hpp"
#include "model/outcome.hpp"

namespace simai {

// The state of the NICs as it is, and as the ends of the connections know it.
class NicStates {
  public:
    explicit NicStates(const Cluster& cluster)
        : fraction_(cluster.nics.size(), 1.0), known_down_(cluster.nics.size(), 0) {}

    double fraction(int nic) const { return fraction_[nic]; }
    bool up(int nic) const { return fraction_[nic] > 0; }
    bool known_down(int nic) const { return known_down_[nic] != 0; }
    bool works(const Lane& lane) const { return !lane.crosses_network() || (up(lane.src_nic) && up(lane.dst_nic)); }
    bool works(const Hop& hop) const {
        for (const Lane& lane : hop.lanes)
            if (!works(lane)) return false;
        return true;
    }
    bool any_down() const { return down_ > 0; }
    bool any_known_down() const { return learnt_ > 0; }
    // A number that changes with what is known to be down.
    std::uint64_t knowledge() const { return knowledge_; }
    void set(int nic, double fraction) {
        down_ += (fraction <= 0) - (fraction_[nic] <= 0);
        fraction_[nic] = fraction;
        if (fraction > 0) forget(nic);
    }
    void learn_down(int nic) {
        learnt_ += !known_down_[nic];
        known_down_[nic] = 1;
        ++knowledge_;
    }

  private:
    void forget(int nic) {
        learnt_ -= known_down_[nic];
        known_down_[nic] = 0;
        ++knowledge_;
    }
    std::vector<double> fraction_;
    std::vector<char> known_down_;
    int down_ = 0;    // NICs that are down
    int learnt_ = 0;  // NICs that are known to be
    std::uint64_t knowledge_ = 1;
};

// Throws std::invalid_argument where an event names a NIC that the cluster does not have.
void validate(const Cluster& cluster, const std::vector<NicEvent>& events);

// The lanes of a hop after its traffic has left every NIC that is known to be down: each dead end moves to the
// first `backups_per_nic` of its backups that are not known to be down. Nothing where no such NIC is left.
std::optional<std::vector<Lane>> migrate(const Cluster& cluster, const NicStates& states, const Hop& hop);

// The reason that a run ends with when a hop has no NIC left.
std::string no_nic_left(const Cluster& cluster, const Hop& hop, int last_nic);

// A binding in which the traffic of every NIC that is known to be down has migrated. Throws std::runtime_error that
// names the pair of ranks where no NIC is left.
Binding migrate(const Cluster& cluster, const Binding& binding, const std::vector<bool>& known_down);

}  // namespace simai
