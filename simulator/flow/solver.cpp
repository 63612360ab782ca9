#include "flow/solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace simai {

void MaxMinSolver::solve(const std::vector<SolverFlow>& flows, const std::vector<double>& capacity,
                         std::vector<double>& rates) {
    constexpr double kFull = 1e-9;  // of its capacity: a port this close to full counts as full
    rates.assign(flows.size(), 0.0);
    ports_.clear();
    active_.clear();
    for (std::size_t f = 0; f < flows.size(); ++f) {
        active_.push_back(static_cast<int>(f));
        for (const Load& load : *flows[f].loads) {
            if (slot_[load.port] < 0) {
                slot_[load.port] = static_cast<int>(ports_.size());
                ports_.push_back({load.port, capacity[load.port], capacity[load.port], 0, 0});
            }
            PortState& port = ports_[slot_[load.port]];
            port.load += load.bytes_per_byte * flows[f].weight;
            ++port.active;
        }
    }
    double theta = 0;  // rate of every growing flow, per unit of weight
    while (!active_.empty()) {
        double step = std::numeric_limits<double>::infinity();
        for (const PortState& port : ports_)
            if (port.active > 0 && port.load > 0) step = std::min(step, std::max(0.0, port.left) / port.load);
        for (int f : active_) step = std::min(step, std::max(0.0, flows[f].cap / flows[f].weight - theta));
        if (!std::isfinite(step)) {  // nothing limits these flows
            for (int f : active_) rates[f] = std::numeric_limits<double>::infinity();
            break;
        }
        theta += step;
        for (PortState& port : ports_)
            if (port.active > 0) port.left -= step * port.load;
        const auto full = [this](const Load& load) {
            const PortState& port = ports_[slot_[load.port]];
            return std::isfinite(port.capacity) && port.left <= kFull * port.capacity;
        };
        // Decide all before any leaves: a port that empties its load here is full for every flow on it.
        const auto frozen = std::stable_partition(active_.begin(), active_.end(), [&](int f) {
            const bool at_cap = theta * flows[f].weight >= flows[f].cap * (1 - kFull);
            return !at_cap && std::none_of(flows[f].loads->begin(), flows[f].loads->end(), full);
        });
        for (auto it = frozen; it != active_.end(); ++it) {
            rates[*it] = theta * flows[*it].weight;
            for (const Load& load : *flows[*it].loads) {
                PortState& port = ports_[slot_[load.port]];
                port.load = --port.active > 0 ? port.load - load.bytes_per_byte * flows[*it].weight : 0;
            }
        }
        active_.erase(frozen, active_.end());
    }
    for (const PortState& port : ports_) slot_[port.port] = -1;
}

}  // namespace simai
