#include <map>

#include "flow/network.hpp"

namespace simai {

void Network::on_nic_event(int id) {
    const NicEvent& event = events_[id];
    const bool was_up = states_.up(event.nic);
    // A failure of before the start has been running its detection since then.
    const double began = event.at_bytes >= 0 ? now_ : std::min(now_, event.time_s);
    event_time_s_[id] = now_;
    log_.push_back({now_,
                    event.fraction == 0  ? "down"
                    : event.fraction < 1 ? "rate"
                                         : "up",
                    event.nic, event.fraction});
    const int ends[] = {nic_port(event.nic, 0), nic_port(event.nic, 1)};
    for (const int port : ends) touch_port(port);
    states_.set(event.nic, event.fraction);
    for (const int port : ends) {
        shape_[port].set_fraction(event.fraction);
        touch_port(port);
    }
    if (event.fraction == 0) {
        if (was_up)
            push(std::max(now_, began + cluster_.resume_delay_s), Kind::kDetected, event.nic,
                 ++nic_version_[event.nic]);
    } else {
        ++nic_version_[event.nic];
    }
    if (event.fraction == 0) cancel_retransmissions(event.nic);
    for (int number : live_) {
        const Collective& collective = *collectives_[number];
        for (int pass = 0; pass < collective.passes(); ++pass) {
            const int f = collective.first + pass;
            if (flows_[f].phase != Phase::kRunning && flows_[f].phase != Phase::kStalled) continue;
            if (!uses(collective, pass, event.nic)) continue;
            if (!was_up && event.fraction > 0) {  // back before its connections had moved: resend what was in flight
                const std::vector<int>& route = collective.hops().of_pass(pass);
                for (std::size_t pos = 0; pos < route.size(); ++pos)
                    for (const Lane& lane : collective.hops().at(route[pos]).lanes)
                        if (lane.uses(event.nic))
                            retransmit(f, route[pos], lost_window(flows_[f], static_cast<int>(pos)) * lane.share);
            }
            if (event.fraction > 0) rebuild(f);
            stall_or_resume(f);
        }
    }
}

bool Network::uses(const Collective& collective, int pass, int nic) const {
    for (int h : collective.hops().of_pass(pass))
        for (const Lane& lane : collective.hops().at(h).lanes)
            if (lane.uses(nic)) return true;
    return false;
}

// A retransmission that runs into another failure is void: the hop will resend its window once it has moved again.
void Network::cancel_retransmissions(int nic) {
    for (int id : retransmissions_) {
        Flow& flow = flows_[id];
        if (flow.phase != Phase::kRunning) continue;
        const auto& loads = flow.shape->loads;
        const bool hit = std::any_of(loads.begin(), loads.end(), [&](const Load& load) {
            return load.port == nic_port(nic, 0) || load.port == nic_port(nic, 1);
        });
        if (!hit) continue;
        leave_ports(id);
        flow.phase = Phase::kComplete;
        --flows_[flow.parent].retransmissions;
        stall_or_resume(flow.parent);
    }
}

void Network::on_detected(int nic) {
    states_.learn_down(nic);
    const std::size_t entry = log_.size();
    log_.push_back({now_, "detected", nic, 0});
    double moved = 0;
    const std::vector<int> live = live_;
    for (int number : live) {
        Collective& collective = *collectives_[number];
        Broken broken{now_, nic, {}};
        for (int h = 0; h < collective.hops().count(); ++h) {
            const auto& lanes = collective.hops().at(h).lanes;
            if (std::any_of(lanes.begin(), lanes.end(), [nic](const Lane& l) { return l.uses(nic); }) &&
                needed(collective, h))
                broken.hops.push_back(h);
        }
        if (broken.hops.empty()) continue;
        moved += static_cast<double>(broken.hops.size());
        log_[entry].value = moved;
        if (!mend(collective, broken)) return;
    }
    if (moved > 0) log_.push_back({now_, "migrated", nic, moved});
}

// Moves the broken connections of a collective as its strategy says, or to their backups. False: the run has ended.
bool Network::mend(Collective& collective, const Broken& broken) {
    Reaction reaction = react_ ? react_(broken, collective.tag) : Reaction{};
    if (reaction.abort) return stop(Status::kAborted, *reaction.abort), false;
    if (!collective.moved) collective.moved = std::make_unique<Hops>(collective.movement->hops);
    Hops& hops = *collective.moved;
    std::vector<char> changed(hops.count(), 0);
    if (reaction.rebind)
        for (int h : hops.rebind(*reaction.rebind)) changed[h] = 1;
    for (int h : broken.hops) {
        if (changed[h]) continue;
        std::optional<std::vector<Lane>> lanes = migrate(cluster_, states_, hops.at(h));
        if (!lanes) return stop(Status::kPartitioned, no_nic_left(cluster_, hops.at(h), broken.nic)), false;
        hops.rebind(h, std::move(*lanes));
        changed[h] = 1;
    }
    for (int pass = 0; pass < collective.passes(); ++pass) {
        const int f = collective.first + pass;
        if (flows_[f].phase != Phase::kRunning && flows_[f].phase != Phase::kStalled) continue;
        bool touched = false;
        const std::vector<int>& route = hops.of_pass(pass);
        for (std::size_t pos = 0; pos < route.size(); ++pos) {
            if (!changed[route[pos]]) continue;
            touched = true;
            retransmit(f, route[pos], lost_window(flows_[f], static_cast<int>(pos)));
        }
        if (!touched) continue;
        rebuild(f);
        stall_or_resume(f);
    }
    return true;
}

// A collective that starts on a plan of before a failure that is known by now: its connections are broken from the
// start.
void Network::leave_dead_nics(Collective& collective) {
    if (!states_.any_known_down() || collective.movement->alive_at == states_.knowledge()) return;
    std::map<int, Broken> broken;  // by NIC
    const Hops& planned = collective.movement->hops;
    for (int h = 0; h < planned.count(); ++h) {
        const int nic = dead_nic(planned.at(h));
        if (nic < 0 || !needed(collective, h)) continue;
        Broken& one = broken.try_emplace(nic, Broken{now_, nic, {}}).first->second;
        one.hops.push_back(h);
    }
    if (broken.empty()) collective.movement->alive_at = states_.knowledge();
    for (const auto& [nic, one] : broken)
        if (!mend(collective, one)) return;
}

// The first NIC of a hop that is known to be down; -1: none.
int Network::dead_nic(const Hop& hop) const {
    for (const Lane& lane : hop.lanes)
        for (int nic : {lane.src_nic, lane.dst_nic})
            if (lane.crosses_network() && states_.known_down(nic)) return nic;
    return -1;
}

// Bytes on a hop of the pass when it broke that no acknowledgement had covered: a round trip's worth at the rate of
// then, back to the start of its chunk; at most a window.
double Network::lost_window(const Flow& flow, int position) const {
    const Collective& collective = of(flow);
    const Pass& pass = collective.movement->schedule.passes[flow.pass];
    std::int64_t section = 0;
    for (const Section& s : pass.sections) section = std::max(section, s.bytes());
    const double chunk = static_cast<double>(section) / pass.chunks;
    const double moved = static_cast<double>(collective.movement->hop_bytes[flow.pass][position]);
    const Hop& hop = collective.hops().at(collective.hops().of(flow.pass, position));
    const double round_trip_s = 2 * collective.hops().path(hop, hop.lanes.front()).latency_s;
    const double sent = flow.done / flow.work * moved;
    const double covered = std::max(0.0, sent - flow.last_rate / flow.work * moved * round_trip_s);
    const double lost = sent - std::floor(covered / chunk) * chunk;
    return cluster_.window_chunks > 0 ? std::min(lost, chunk * cluster_.window_chunks) : lost;
}

void Network::retransmit(int parent, int hop, double lost) {
    const Collective& collective = of(flows_[parent]);
    if (!(lost > 0) || !states_.works(collective.hops().at(hop))) return;  // a dead lane resends when it has moved
    auto shape = std::make_shared<Shape>();
    add_loads(*shape, collective.hops(), hop, 1, collective.movement->copies);
    for (const Load& load : shape->loads) load_slot_[load.port] = -1;
    Flow flow;
    flow.collective = flows_[parent].collective;
    flow.parent = parent;
    flow.work = lost;
    flow.weight = flows_[parent].weight;
    flow.shape = std::move(shape);
    ++flows_[parent].retransmissions;
    const int id = static_cast<int>(flows_.size());
    flows_.push_back(std::move(flow));
    is_dirty_.push_back(0);
    retransmissions_.push_back(id);
    join_ports(id);
}

bool Network::needed(const Collective& collective, int hop) const {
    for (int pass = 0; pass < collective.passes(); ++pass) {
        const Phase phase = flows_[collective.first + pass].phase;
        if (phase == Phase::kComplete || phase == Phase::kDraining) continue;
        const std::vector<int>& route = collective.hops().of_pass(pass);
        for (std::size_t h = 0; h < route.size(); ++h)
            if (route[h] == hop && collective.movement->hop_bytes[pass][h] > 0) return true;
    }
    return false;
}

void Network::stall_or_resume(int id) {
    const Flow& flow = flows_[id];
    const Collective& collective = of(flow);
    bool works = flow.retransmissions == 0;
    const std::vector<int>& route = collective.hops().of_pass(flow.pass);
    const std::vector<std::int64_t>& bytes = collective.movement->hop_bytes[flow.pass];
    for (std::size_t pos = 0; works && states_.any_down() && pos < route.size(); ++pos)
        works = bytes[pos] == 0 || states_.works(collective.hops().at(route[pos]));
    if (works && flow.phase == Phase::kStalled) join_ports(id);
    if (!works && flow.phase == Phase::kRunning) leave_ports(id);
}

}  // namespace simai
