#include <algorithm>
#include <map>

#include "chunk/chunk_engine.hpp"

namespace simai {

void ChunkEngine::on_nic_event(int id) {
    const NicEvent event = events_[id];
    const bool was_up = states_.up(event.nic);
    const double began = event.at_bytes >= 0 ? now_s() : std::min(now_s(), event.time_s);
    out_.event_time_s[id] = now_s();
    out_.log.push_back({now_s(),
                        event.fraction == 0  ? "down"
                        : event.fraction < 1 ? "rate"
                                             : "up",
                        event.nic, event.fraction});
    states_.set(event.nic, event.fraction);
    const int n = static_cast<int>(connection_.size());
    if (event.fraction == 0) {
        if (!was_up) return;
        ++nic_version_[event.nic];
        queue_.push(ps(std::max(now_s(), began + cluster_.resume_delay_s)), ChunkEvent::kDetected,
                    static_cast<std::uint32_t>(event.nic), nic_version_[event.nic]);
        for (int c = 0; c < n; ++c)
            if (connection_[c].up && connection_[c].lane.uses(event.nic)) {
                roll_back(c);
                connection_[c].up = false;
            }
        return;
    }
    ++nic_version_[event.nic];
    const double slower = port_[ports_.nic_out(event.nic)].fraction / event.fraction;
    for (const int p : {ports_.nic_out(event.nic), ports_.nic_in(event.nic)}) {
        port_[p].fraction = event.fraction;
        if (slower > 1 && port_[p].busy_until > now_) port_[p].busy_until = later(port_[p].busy_until, slower);
    }
    for (int c = 0; c < n; ++c) {
        if (!connection_[c].lane.uses(event.nic)) continue;
        if (connection_[c].up) {
            unreserve(c);
            if (slower > 1) stretch(c, slower);
        } else {
            // Its chunks go out again from the last acknowledged one, unless they have moved to another NIC.
            const std::vector<int>& live = of_hop_[connection_[c].hop];
            if (std::find(live.begin(), live.end(), c) == live.end()) continue;
            connection_[c].up = states_.works(connection_[c].lane);
        }
        try_send(c);
    }
}

// Back to the last acknowledged chunk: what is in flight is lost, what was delivered without an acknowledgement goes
// out again and is dropped by the receiver.
void ChunkEngine::roll_back(int id) {
    Connection& c = connection_[id];
    c.acknowledge(now_);
    ++c.epoch;
    take_back(c, c.flight.begin());
    c.delivered = c.flight.begin();
    free_ports(c);
}

// What was sent from entry `from` on waits again, before all else of its pass.
void ChunkEngine::take_back(Connection& c, std::uint64_t from) {
    std::map<int, std::vector<Entry>> by_pass;
    for (std::uint64_t k = from; k < c.flight.end(); ++k)
        by_pass[token_[c.flight[k].token].pass].push_back(c.flight[k]);
    c.flight.cut(from);
    for (const auto& [pass, entries] : by_pass) c.waiting.push_front(pass, entries);
}

// What a connection has booked ahead of time is void; a port that others use has at most one chunk under way.
void ChunkEngine::free_ports(const Connection& c) {
    if (!c.exclusive) return;
    for (int i = 0; i < c.path.count; ++i) {
        ChunkPort& p = port_[c.path.use[i].port];
        p.busy_until = std::min(p.busy_until, now_);
    }
}

// Takes back chunks that were booked but have not started, because their ports change rate or get another user.
void ChunkEngine::unreserve(int id) {
    Connection& c = connection_[id];
    std::uint64_t keep = c.delivered;
    while (keep < c.flight.end() && (keep == c.delivered || c.flight[keep - 1].time - c.latency <= now_)) ++keep;
    if (keep == c.flight.end()) return;
    ++c.epoch;
    take_back(c, keep);
    for (std::uint64_t k = c.delivered; k < keep; ++k)
        queue_.push(c.flight[k].time, ChunkEvent::kDelivered, static_cast<std::uint32_t>(id), c.epoch);
    for (int i = 0; i < c.path.count; ++i) {
        const bool sender = i < c.path.senders;
        ChunkPort& p = port_[c.path.use[i].port];
        const Ps last = keep > c.delivered ? c.flight[keep - 1].time - (sender ? c.latency : 0) : now_;
        if (c.exclusive) p.busy_until = std::max(now_, last);
    }
}

// What is under way on a port that has become slower takes longer from now on.
void ChunkEngine::stretch(int id, double factor) {
    Connection& c = connection_[id];
    if (c.delivered == c.flight.end()) return;
    ++c.epoch;
    for (std::uint64_t k = c.delivered; k < c.flight.end(); ++k) {
        const Ps sent = c.flight[k].time - c.latency;
        if (sent > now_) c.flight[k].time = later(sent, factor) + c.latency;
        queue_.push(c.flight[k].time, ChunkEvent::kDelivered, static_cast<std::uint32_t>(id), c.epoch);
    }
    if (!c.exclusive) return;
    for (int i = 0; i < c.path.count; ++i) {
        ChunkPort& p = port_[c.path.use[i].port];
        p.busy_until = std::max(p.busy_until, c.flight[c.flight.end() - 1].time - (i < c.path.senders ? c.latency : 0));
    }
}

void ChunkEngine::on_detected(int nic) {
    states_.learn_down(nic);
    Broken broken{now_s(), nic, {}};
    for (int h = 0; h < hops_.count(); ++h) {
        const auto& lanes = hops_.at(h).lanes;
        if (hop_left_[h] > 0 && std::any_of(lanes.begin(), lanes.end(), [nic](const Lane& l) { return l.uses(nic); }))
            broken.hops.push_back(h);
    }
    out_.log.push_back({now_s(), "detected", nic, static_cast<double>(broken.hops.size())});
    if (broken.hops.empty()) return;
    const Reaction reaction = react_ ? react_(broken) : Reaction{};
    if (reaction.abort) return stop(Status::kAborted, *reaction.abort);
    std::vector<int> changed;
    if (reaction.rebind) changed = hops_.rebind(*reaction.rebind);
    for (int h : broken.hops) {
        if (std::find(changed.begin(), changed.end(), h) != changed.end()) continue;
        std::optional<std::vector<Lane>> lanes = migrate(cluster_, states_, hops_.at(h));
        if (!lanes) return stop(Status::kPartitioned, no_nic_left(cluster_, hops_.at(h), nic));
        hops_.rebind(h, std::move(*lanes));
        changed.push_back(h);
    }
    out_.log.push_back({now_s(), "migrated", nic, static_cast<double>(broken.hops.size())});
    for (int h : changed) rebind(h);
}

// Moves the chunks of a hop to its new lanes; lanes that stay keep what they have.
void ChunkEngine::rebind(int hop) {
    std::vector<Lane> wanted = hops_.at(hop).lanes;
    std::vector<int> kept;
    std::vector<Entry> entries;
    for (int id : of_hop_[hop]) {
        Connection& c = connection_[id];
        const auto same = std::find_if(wanted.begin(), wanted.end(), [&](const Lane& l) {
            return l.src_nic == c.lane.src_nic && l.dst_nic == c.lane.dst_nic;
        });
        if (c.up && same != wanted.end()) {
            c.lane.share = same->share;
            wanted.erase(same);
            kept.push_back(id);
        } else {
            retire(id, entries);
        }
    }
    of_hop_[hop] = kept;
    for (int id : kept) connection_[id].assigned = 0;
    for (const Lane& lane : wanted) {
        const int id = connect(hop, lane);
        for (int i = 0; i < connection_[id].path.count; ++i) check_exclusive(connection_[id].path.use[i].port);
    }
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.token < b.token; });
    for (const Entry& entry : entries) enqueue(hop, entry);
}

void ChunkEngine::retire(int id, std::vector<Entry>& entries) {
    Connection& c = connection_[id];
    roll_back(id);
    c.up = false;
    flush(c);
    c.waiting.each([&entries](const Entry& entry) { entries.push_back(entry); });
    c.waiting.clear();
    for (int i = 0; i < c.path.count; ++i) std::erase(port_[c.path.use[i].port].connections, id);
    for (int i = 0; i < c.path.count; ++i) check_exclusive(c.path.use[i].port);
}

// A connection whose ports are all its own books ahead; it stops doing so when one gets a second user. A port with a
// token bucket is not booked ahead, since a booking that is taken back would have to give its tokens back.
void ChunkEngine::check_exclusive(int port) {
    for (int id : port_[port].connections) {
        Connection& c = connection_[id];
        bool alone = true;
        for (int i = 0; i < c.path.count; ++i) {
            const ChunkPort& p = port_[c.path.use[i].port];
            alone = alone && p.connections.size() == 1 && p.burst <= 0;
        }
        if (c.exclusive && !alone && c.up) {
            unreserve(id);
            const int first = c.path.use[0].port;
            wake(first, std::max(now_, port_[first].busy_until));
        }
        c.exclusive = alone;
    }
}

void ChunkEngine::flush(Connection& c) {
    if (c.lane.crosses_network()) {
        const double wire = static_cast<double>(c.payload) * c.path.use[0].bytes_per_byte;
        out_payload_[c.lane.src_nic] += c.payload;
        in_payload_[c.lane.dst_nic] += c.payload;
        out_wire_[c.lane.src_nic] += wire;
        in_wire_[c.lane.dst_nic] += wire;
    }
    c.payload = 0;
}

// Bytes on the wire that the busier direction of a NIC has counted.
double ChunkEngine::counter(int nic) const {
    double in = in_wire_[nic], out = out_wire_[nic];
    for (const int p : {ports_.nic_out(nic), ports_.nic_in(nic)}) {
        for (int id : port_[p].connections) {
            const Connection& c = connection_[id];
            const double wire = static_cast<double>(c.payload) * c.path.use[0].bytes_per_byte;
            (p == ports_.nic_out(nic) ? out : in) += wire;
        }
    }
    return std::max(in, out);
}

void ChunkEngine::watch(int nic) {
    while (!triggers_[nic].empty() && counter(nic) >= events_[triggers_[nic].back()].at_bytes) {
        const int id = triggers_[nic].back();
        triggers_[nic].pop_back();
        on_nic_event(id);
    }
}

std::string ChunkEngine::who_waits() const {
    std::string who;
    int named = 0;
    for (std::size_t i = 0; i < schedule_.passes.size() && named < 4; ++i) {
        if (!std::isnan(out_.pass_end_s[i])) continue;
        const bool started = !std::isnan(out_.pass_start_s[i]);
        who += (named++ ? ", pass " : "pass ") + std::to_string(i) +
               (started ? " (chunks that do not arrive)" : " (its predecessors)");
    }
    return who;
}

}  // namespace simai
