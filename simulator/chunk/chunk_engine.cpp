#include "chunk/chunk_engine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace simai {

Outcome ChunkEngine::run() {
    set_up();
    const Ps end = ps(options_.limits.max_time_s);
    while (!order_.finished() && !stopped_) {
        if (queue_.empty() || queue_.top().time > end || out_.steps >= options_.limits.max_steps) {
            stop(Status::kUnfinished, "waits for ever: " + who_waits());
            break;
        }
        const QueuedEvent event = queue_.top();
        queue_.pop();
        now_ = event.time;
        ++out_.steps;
        handle(event);
    }
    return finish();
}

void ChunkEngine::handle(const QueuedEvent& event) {
    const int id = static_cast<int>(event.id);
    switch (event.kind()) {
        case ChunkEvent::kDelivered:
            if (event.epoch == connection_[id].epoch) on_delivered(id);
            break;
        case ChunkEvent::kPortFree:
            if (port_[id].wake_at == now_) {
                port_[id].wake_at = kUnknown;
                dispatch(id);
            }
            break;
        case ChunkEvent::kNicEvent:
            on_nic_event(id);
            break;
        case ChunkEvent::kDetected:
            if (event.epoch == nic_version_[id]) on_detected(id);
            break;
        case ChunkEvent::kStart:
            release_ready();
            break;
    }
}

void ChunkEngine::set_up_ports() {
    port_.resize(ports_.count());
    const std::vector<double> rates = port_rates(cluster_);
    for (int p = 0; p < ports_.count(); ++p) port_[p].rate = port_[p].line_rate = rates[p];
    for (int i = 0; i < ports_.nics; ++i) {
        for (const int p : {ports_.nic_out(i), ports_.nic_in(i)}) {
            port_[p].line_rate = cluster_.nics[i].line_rate;
            port_[p].burst = port_[p].tokens = cluster_.nics[i].burst;
        }
    }
}

void ChunkEngine::set_up() {
    constexpr double kNever = std::numeric_limits<double>::quiet_NaN();
    const int n = static_cast<int>(schedule_.passes.size());
    set_up_ports();
    in_payload_.assign(ports_.nics, 0);
    out_payload_.assign(ports_.nics, 0);
    in_wire_.assign(ports_.nics, 0);
    out_wire_.assign(ports_.nics, 0);
    nic_version_.assign(ports_.nics, 0);
    triggers_.resize(ports_.nics);
    out_.pass_start_s.assign(n, kNever);
    out_.pass_end_s.assign(n, kNever);
    out_.event_time_s.assign(events_.size(), kNever);

    of_hop_.resize(hops_.count());
    hop_left_.assign(hops_.count(), 0);
    for (int h = 0; h < hops_.count(); ++h)
        for (const Lane& lane : hops_.at(h).lanes) connect(h, lane);
    for (int p = 0; p < ports_.count(); ++p) check_exclusive(p);

    pass_left_.assign(n, 0);
    hop_weight_.resize(n);
    for (int i = 0; i < n; ++i) {
        const Pass& pass = schedule_.passes[i];
        for (const Section& s : pass.sections) pass_left_[i] += travelling_pieces(s, pass.chunks);
        const std::vector<std::int64_t> bytes = schedule_.hop_bytes(pass);
        hops_.require_bound(i, bytes);
        const std::vector<std::int64_t> chunks = schedule_.hop_chunks(pass);
        const double scale = pass.bytes() > 0 ? pass.weight / static_cast<double>(pass.bytes()) : 1;
        for (std::size_t h = 0; h < bytes.size(); ++h) {
            hop_left_[hops_.of(i, static_cast<int>(h))] += chunks[h];
            hop_weight_[i].push_back(static_cast<double>(bytes[h]) * scale);
        }
    }
    for (std::size_t e = 0; e < events_.size(); ++e) {
        const NicEvent& event = events_[e];
        watching_ = watching_ || event.at_bytes >= 0;
        if (event.at_bytes >= 0)
            triggers_[event.nic].push_back(static_cast<int>(e));
        else if (event.time_s <= options_.limits.max_time_s)
            queue_.push(ps(std::max(0.0, event.time_s)), ChunkEvent::kNicEvent, static_cast<std::uint32_t>(e));
    }
    for (auto& waiting : triggers_)
        std::stable_sort(waiting.begin(), waiting.end(),
                         [this](int a, int b) { return events_[a].at_bytes > events_[b].at_bytes; });
    queue_.push(ps(cluster_.base_latency_s), ChunkEvent::kStart, 0);
}

int ChunkEngine::connect(int hop, const Lane& lane) {
    const int id = static_cast<int>(connection_.size());
    Connection c;
    c.hop = hop;
    c.lane = lane;
    c.path = hops_.path(hops_.at(hop), lane);
    c.latency = ps(c.path.latency_s);
    c.up = states_.works(lane);
    for (int i = 0; i < c.path.count; ++i) port_[c.path.use[i].port].connections.push_back(id);
    of_hop_[hop].push_back(id);
    connection_.push_back(std::move(c));
    return id;
}

void ChunkEngine::release_ready() {
    for (int pass = order_.next(); pass >= 0; pass = order_.next()) start(pass);
}

void ChunkEngine::start(int id) {
    const Pass& pass = schedule_.passes[id];
    out_.pass_start_s[id] = now_s();
    if (pass_left_[id] == 0 || pass.hops() == 0) return complete(id);
    for (std::size_t s = 0; s < pass.sections.size(); ++s) {
        const Section& section = pass.sections[s];
        for (int i = 0; i < pass.chunks; ++i) {
            const std::int64_t bytes =
                piece(section.lo, section.hi, i + 1, pass.chunks) - piece(section.lo, section.hi, i, pass.chunks);
            if (bytes == 0) continue;
            const int token = static_cast<int>(token_.size());
            token_.push_back({bytes, id, static_cast<int>(s), i, section.start, 0});
            enqueue(hops_.of(id, section.start), {token, 0, 0});
        }
    }
}

void ChunkEngine::complete(int id) {
    out_.pass_end_s[id] = now_s();
    order_.complete(id);
    queue_.push(now_, ChunkEvent::kStart, 0);
}

// Gives a chunk to the lane of its hop that has had the least for its share.
void ChunkEngine::enqueue(int hop, const Entry& entry) {
    const std::vector<int>& lanes = of_hop_[hop];
    int best = lanes.front();
    if (lanes.size() > 1) {
        for (int id : lanes)
            if (connection_[id].assigned / connection_[id].lane.share <
                connection_[best].assigned / connection_[best].lane.share)
                best = id;
        connection_[best].assigned += static_cast<double>(token_[entry.token].bytes);
    }
    connection_[best].waiting.push(token_[entry.token].pass, entry);
    try_send(best);
}

// When the next chunk may leave as far as the window goes: once the one a window before it is acknowledged.
Ps ChunkEngine::window_opens(const Connection& c) const {
    const auto window = static_cast<std::uint64_t>(cluster_.window_chunks);
    if (window == 0 || c.flight.end() < c.flight.begin() + window) return 0;
    const std::uint64_t before = c.flight.end() - window;
    return before < c.delivered ? c.flight[before].time : kUnknown;
}

void ChunkEngine::try_send(int id) {
    Connection& c = connection_[id];
    if (!c.up) return;
    c.acknowledge(now_);
    if (!c.exclusive) return dispatch(c.path.use[0].port);
    // Nobody else can come between: book the port ahead, as far as the window reaches.
    while (!c.waiting.empty()) {
        const Ps open = window_opens(c);
        if (open == kUnknown) return;  // the next delivery calls again
        send(c, id, std::max({now_, open, port_[c.path.use[0].port].busy_until}));
    }
}

void ChunkEngine::wake(int port, Ps at) {
    ChunkPort& p = port_[port];
    if (p.wake_at != kUnknown && p.wake_at <= at) return;
    p.wake_at = at;
    queue_.push(at, ChunkEvent::kPortFree, static_cast<std::uint32_t>(port));
}

double ChunkEngine::weight_of(const Connection& c) const {
    const Token& token = token_[c.waiting.front().token];
    return hop_weight_[token.pass][token.position] * c.lane.share;
}

// Lets the waiting connection with the smallest start tag send its next chunk (start-time fair queueing).
void ChunkEngine::dispatch(int port) {
    ChunkPort& p = port_[port];
    if (p.busy_until > now_) return wake(port, p.busy_until);
    int best = -1;
    double best_tag = 0;
    Ps soonest = std::numeric_limits<Ps>::max();
    bool more = false;
    for (int id : p.connections) {
        Connection& c = connection_[id];
        if (c.path.use[0].port != port || !c.up || c.waiting.empty()) continue;
        const Ps open = window_opens(c);
        if (open == kUnknown) continue;
        if (open > now_) {
            soonest = std::min(soonest, open);
            continue;
        }
        const double tag = std::max(c.tag, p.virtual_time);
        more = more || best >= 0;
        if (best < 0 || tag < best_tag) {
            best = id;
            best_tag = tag;
        }
    }
    if (best < 0) {
        if (soonest < std::numeric_limits<Ps>::max()) wake(port, soonest);
        return;
    }
    Connection& c = connection_[best];
    p.virtual_time = best_tag;
    c.tag = best_tag + static_cast<double>(token_[c.waiting.front().token].bytes) / weight_of(c);
    send(c, best, now_);
    if (more || !c.waiting.empty() || soonest < std::numeric_limits<Ps>::max()) wake(port, p.busy_until);
}

// Sends the next entry at `at`: it takes the sender's ports at their rates, and the receiver's at theirs.
void ChunkEngine::send(Connection& c, int id, Ps at) {
    Entry entry = c.waiting.front();
    c.waiting.pop();
    const double bytes = static_cast<double>(token_[entry.token].bytes);
    Ps out = at;
    for (int i = 0; i < c.path.senders; ++i) {
        ChunkPort& p = port_[c.path.use[i].port];
        out = std::max(out, p.serve(std::max(at, p.busy_until), bytes * c.path.use[i].bytes_per_byte));
    }
    Ps in = out + c.latency;
    for (int i = c.path.senders; i < c.path.count; ++i) {
        ChunkPort& p = port_[c.path.use[i].port];
        in = std::max(in, p.serve(std::max(at + c.latency, p.busy_until), bytes * c.path.use[i].bytes_per_byte));
    }
    entry.time = in;
    c.flight.push(entry);
    queue_.push(in, ChunkEvent::kDelivered, static_cast<std::uint32_t>(id), c.epoch);
}

void ChunkEngine::on_delivered(int id) {
    Connection& c = connection_[id];
    Entry& entry = c.flight[c.delivered++];
    entry.time = now_ + c.latency;  // the acknowledgement comes back
    const int token_id = entry.token;
    Token& token = token_[token_id];
    c.payload += token.bytes;
    const bool fresh = token.hop == entry.hop;
    const bool waiting = !c.waiting.empty();
    const int hop = c.hop;
    if (fresh || !options_.drop_duplicates) {
        const Pass& pass = schedule_.passes[token.pass];
        if (options_.provenance != nullptr) {
            const Section& s = pass.sections[token.section];
            options_.provenance->arrive(hops_.at(hop).src, hops_.at(hop).dst,
                                        piece(s.lo, s.hi, token.piece, pass.chunks),
                                        piece(s.lo, s.hi, token.piece + 1, pass.chunks), entry.hop < pass.reduce_hops);
        }
    }
    if (waiting) try_send(id);  // `c` and `entry` may have moved from here on
    if (fresh) {
        --hop_left_[hop];
        advance(token_id);
    }
    if (watching_) {
        const Lane lane = connection_[id].lane;
        if (lane.crosses_network()) {
            watch(lane.src_nic);
            watch(lane.dst_nic);
        }
    }
}

// A chunk has arrived: on to the next hop, or it is where it belongs.
void ChunkEngine::advance(int token_id) {
    Token& token = token_[token_id];
    const Pass& pass = schedule_.passes[token.pass];
    if (++token.hop == pass.hops()) {
        if (--pass_left_[token.pass] == 0) complete(token.pass);
        return;
    }
    if (++token.position == static_cast<int>(schedule_.routes[pass.route].size())) token.position = 0;
    enqueue(hops_.of(token.pass, token.position), {token_id, token.hop, 0});
}

Outcome ChunkEngine::finish() {
    for (Connection& c : connection_) flush(c);
    out_.elapsed_s = now_s();
    for (int i = 0; i < ports_.nics; ++i) {
        out_.out_payload.push_back(static_cast<double>(out_payload_[i]));
        out_.in_payload.push_back(static_cast<double>(in_payload_[i]));
    }
    out_.out_wire = out_wire_;
    out_.in_wire = in_wire_;
    return std::move(out_);
}

Outcome run_chunk(const Cluster& cluster, const Schedule& schedule, const Binding& binding,
                  const std::vector<NicEvent>& events, const React& react, const ChunkOptions& options) {
    validate(cluster, events);
    return ChunkEngine(cluster, schedule, binding, events, react, options).run();
}

}  // namespace simai
