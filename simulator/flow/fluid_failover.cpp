#include "flow/fluid.hpp"

namespace simai {

void FlowRun::on_nic_event(int id) {
    const NicEvent& event = events_[id];
    const bool was_up = states_.up(event.nic);
    // A failure of before the start has been running its detection since then.
    const double began = event.at_bytes >= 0 ? now_ : std::min(now_, event.time_s);
    out_.event_time_s[id] = now_;
    out_.log.push_back({now_,
                        event.fraction == 0  ? "down"
                        : event.fraction < 1 ? "rate"
                                             : "up",
                        event.nic, event.fraction});
    for (const int port : {ports_.nic_out(event.nic), ports_.nic_in(event.nic)}) touch_port(port);
    states_.set(event.nic, event.fraction);
    for (const int port : {ports_.nic_out(event.nic), ports_.nic_in(event.nic)}) {
        shape_[port].set_fraction(event.fraction);
        capacity_[port] = shape_[port].capacity();
        planning_[port] = shape_[port].planning();
    }
    if (event.fraction == 0) {
        if (was_up)
            push(std::max(now_, began + cluster_.resume_delay_s), Kind::kDetected, event.nic,
                 ++nic_version_[event.nic]);
    } else {
        ++nic_version_[event.nic];
    }
    if (event.fraction == 0) cancel_retransmissions(event.nic);
    const int passes = static_cast<int>(schedule_.passes.size());
    for (int f = 0; f < passes; ++f) {
        if (flows_[f].phase != Phase::kRunning && flows_[f].phase != Phase::kStalled) continue;
        if (!uses(f, event.nic)) continue;
        if (!was_up && event.fraction > 0) {  // back before its connections had moved: resend what was in flight
            for (std::size_t pos = 0; pos < hops_.of_pass(f).size(); ++pos)
                for (const Lane& lane : hops_.at(hops_.of_pass(f)[pos]).lanes)
                    if (lane.uses(event.nic))
                        retransmit(f, hops_.of_pass(f)[pos],
                                   lost_window(flows_[f], static_cast<int>(pos)) * lane.share);
        }
        if (event.fraction > 0) rebuild(f);
        stall_or_resume(f);
    }
}

bool FlowRun::uses(int pass, int nic) const {
    for (int h : hops_.of_pass(pass))
        for (const Lane& lane : hops_.at(h).lanes)
            if (lane.uses(nic)) return true;
    return false;
}

// A retransmission that runs into another failure is void: the hop will resend its window once it has moved again.
void FlowRun::cancel_retransmissions(int nic) {
    for (std::size_t id = schedule_.passes.size(); id < flows_.size(); ++id) {
        Flow& flow = flows_[id];
        if (flow.phase != Phase::kRunning) continue;
        const bool hit = std::any_of(flow.loads.begin(), flow.loads.end(), [&](const Load& load) {
            return load.port == ports_.nic_out(nic) || load.port == ports_.nic_in(nic);
        });
        if (!hit) continue;
        leave_ports(static_cast<int>(id));
        flow.phase = Phase::kComplete;
        --flows_[flow.parent].retransmissions;
        stall_or_resume(flow.parent);
    }
}

void FlowRun::on_detected(int nic) {
    states_.learn_down(nic);
    Broken broken{now_, nic, {}};
    for (int h = 0; h < hops_.count(); ++h) {
        const auto& lanes = hops_.at(h).lanes;
        if (std::any_of(lanes.begin(), lanes.end(), [nic](const Lane& l) { return l.uses(nic); }) && needed(h))
            broken.hops.push_back(h);
    }
    out_.log.push_back({now_, "detected", nic, static_cast<double>(broken.hops.size())});
    if (broken.hops.empty()) return;
    Reaction reaction = react_ ? react_(broken) : Reaction{};
    if (reaction.abort) return stop(Status::kAborted, *reaction.abort);
    std::vector<char> changed(hops_.count(), 0);
    if (reaction.rebind)
        for (int h : hops_.rebind(*reaction.rebind)) changed[h] = 1;
    for (int h : broken.hops) {
        if (changed[h]) continue;
        std::optional<std::vector<Lane>> lanes = migrate(cluster_, states_, hops_.at(h));
        if (!lanes) return stop(Status::kPartitioned, no_nic_left(cluster_, hops_.at(h), nic));
        hops_.rebind(h, std::move(*lanes));
        changed[h] = 1;
    }
    out_.log.push_back({now_, "migrated", nic, static_cast<double>(broken.hops.size())});
    const int passes = static_cast<int>(schedule_.passes.size());
    for (int f = 0; f < passes; ++f) {
        if (flows_[f].phase != Phase::kRunning && flows_[f].phase != Phase::kStalled) continue;
        bool touched = false;
        const std::vector<int>& route = hops_.of_pass(f);
        for (std::size_t pos = 0; pos < route.size(); ++pos) {
            if (!changed[route[pos]]) continue;
            touched = true;
            retransmit(f, route[pos], lost_window(flows_[f], static_cast<int>(pos)));
        }
        if (!touched) continue;
        rebuild(f);
        stall_or_resume(f);
    }
}

// Bytes on a hop of the pass when it broke that no acknowledgement had covered: a round trip's worth at the rate of
// then, back to the start of its chunk; at most a window.
double FlowRun::lost_window(const Flow& flow, int position) const {
    const Pass& pass = schedule_.passes[flow.pass];
    std::int64_t section = 0;
    for (const Section& s : pass.sections) section = std::max(section, s.bytes());
    const double chunk = static_cast<double>(section) / pass.chunks;
    const double moved = static_cast<double>(hop_bytes_[flow.pass][position]);
    const Hop& hop = hops_.at(hops_.of(flow.pass, position));
    const double round_trip_s = 2 * hops_.path(hop, hop.lanes.front()).latency_s;
    const double sent = flow.done / flow.work * moved;
    const double covered = std::max(0.0, sent - flow.last_rate / flow.work * moved * round_trip_s);
    const double lost = sent - std::floor(covered / chunk) * chunk;
    return cluster_.window_chunks > 0 ? std::min(lost, chunk * cluster_.window_chunks) : lost;
}

void FlowRun::retransmit(int parent, int hop, double lost) {
    if (!(lost > 0) || !states_.works(hops_.at(hop))) return;  // a dead lane resends when it has moved
    Flow flow;
    flow.parent = parent;
    flow.work = lost;
    flow.weight = flows_[parent].weight;
    for (const Lane& lane : hops_.at(hop).lanes) {
        const LanePath path = hops_.path(hops_.at(hop), lane);
        for (int i = 0; i < path.count; ++i) {
            flow.loads.push_back({path.use[i].port, path.use[i].bytes_per_byte * lane.share});
            flow.payload.push_back(lane.share);
        }
    }
    ++flows_[parent].retransmissions;
    const int id = static_cast<int>(flows_.size());
    flows_.push_back(std::move(flow));
    is_dirty_.push_back(0);
    join_ports(id);
}

bool FlowRun::needed(int hop) const {
    for (std::size_t i = 0; i < schedule_.passes.size(); ++i) {
        const Phase phase = flows_[i].phase;
        if (phase == Phase::kComplete || phase == Phase::kDraining) continue;
        const std::vector<int>& route = hops_.of_pass(static_cast<int>(i));
        for (std::size_t h = 0; h < route.size(); ++h)
            if (route[h] == hop && hop_bytes_[i][h] > 0) return true;
    }
    return false;
}

void FlowRun::stall_or_resume(int id) {
    const Flow& flow = flows_[id];
    bool works = flow.retransmissions == 0;
    const std::vector<int>& route = hops_.of_pass(id);
    for (std::size_t pos = 0; works && pos < route.size(); ++pos)
        works = hop_bytes_[id][pos] == 0 || states_.works(hops_.at(route[pos]));
    if (works && flow.phase == Phase::kStalled) join_ports(id);
    if (!works && flow.phase == Phase::kRunning) leave_ports(id);
}

}  // namespace simai
