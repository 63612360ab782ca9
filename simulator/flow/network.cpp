#include "flow/network.hpp"

namespace simai {

Network::Network(const Cluster& cluster, const std::vector<NicEvent>& events, NetworkReact react, PortFold fold,
                 Sharing sharing)
    : cluster_(cluster),
      events_(events),
      react_(std::move(react)),
      fold_(std::move(fold)),
      sharing_(sharing),
      ports_(cluster),
      states_(cluster),
      solver_(ports_.count()) {
    validate(cluster, events);
    const int nics = ports_.nics;
    shape_.resize(ports_.count());
    const std::vector<double> rates = port_rates(cluster_);
    for (int p = 0; p < ports_.count(); ++p) shape_[p] = ShapedPort(rates[p], rates[p], 0);
    for (int i = 0; i < nics; ++i) {
        const Nic& nic = cluster_.nics[i];
        shape_[ports_.nic_out(i)] = shape_[ports_.nic_in(i)] = ShapedPort(nic.rate, nic.line_rate, nic.burst);
    }
    for (const ShapedPort& port : shape_) {
        capacity_.push_back(port.capacity());
        planning_.push_back(port.planning());
    }
    usage_.assign(ports_.count(), 0);
    wire_.assign(ports_.count(), 0);
    payload_.assign(ports_.count(), 0);
    on_port_.resize(ports_.count());
    port_seen_.assign(ports_.count(), 0);
    load_slot_.assign(ports_.count(), -1);
    port_version_.assign(ports_.count(), 0);
    nic_version_.assign(nics, 0);
    trigger_version_.assign(nics, 0);
    triggers_.resize(nics);
    event_time_s_.assign(events_.size(), kNever);
    for (std::size_t e = 0; e < events_.size(); ++e) {
        if (events_[e].at_bytes < 0) {
            push(std::max(0.0, events_[e].time_s), Kind::kNicEvent, static_cast<int>(e));
            continue;
        }
        std::vector<int>& waiting = triggers_[events_[e].nic];
        if (waiting.empty()) watched_.push_back(events_[e].nic);
        waiting.push_back(static_cast<int>(e));
    }
    for (auto& waiting : triggers_)
        std::stable_sort(waiting.begin(), waiting.end(),
                         [this](int a, int b) { return events_[a].at_bytes < events_[b].at_bytes; });
    std::sort(watched_.begin(), watched_.end());
}

int Network::begin(const Movement& movement, int tag, double now_s, double delay_s) {
    now_ = now_s;
    const int id = static_cast<int>(collectives_.size());
    collectives_.push_back(std::make_unique<Collective>(id, movement, tag, static_cast<int>(flows_.size())));
    Collective& collective = *collectives_.back();
    const std::vector<Pass>& passes = movement.schedule.passes;
    collective.pass_start_s.assign(passes.size(), kNever);
    collective.pass_end_s.assign(passes.size(), kNever);
    for (std::size_t i = 0; i < passes.size(); ++i) {
        Flow& flow = flows_.emplace_back();
        flow.collective = id;
        flow.pass = static_cast<int>(i);
        flow.work = static_cast<double>(passes[i].bytes());
        flow.weight = passes[i].weight > 0 ? passes[i].weight : 1;
    }
    is_dirty_.resize(flows_.size(), 0);
    live_.push_back(id);
    leave_dead_nics(collective);
    push(now_s + delay_s, Kind::kRelease, id);
    return id;
}

void Network::step() {
    now_ = queue_.top().time_s;
    while (!queue_.empty() && queue_.top().time_s <= now_ && !stopped_) {
        const Event event = queue_.top();
        queue_.pop();
        handle(event);
    }
    if (!stopped_) resolve();
}

void Network::handle(const Event& event) {
    switch (event.kind) {
        case Kind::kNicEvent:
            on_nic_event(event.id);
            break;
        case Kind::kDetected:
            if (event.version == nic_version_[event.id]) on_detected(event.id);
            break;
        case Kind::kRelease:
            if (collectives_[event.id]) release_ready(*collectives_[event.id]);
            break;
        case Kind::kDrained:
            if (event.version == flows_[event.id].version) drained(event.id);
            break;
        case Kind::kComplete:
            complete(event.id);
            break;
        case Kind::kPortDry:
            if (event.version == port_version_[event.id]) on_port_dry(event.id);
            break;
        case Kind::kByteTrigger:
            if (event.version == trigger_version_[event.id]) {
                const int id = triggers_[event.id].front();
                triggers_[event.id].erase(triggers_[event.id].begin());
                on_nic_event(id);
                watch_triggers(event.id);
            }
            break;
    }
}

void Network::release_ready(Collective& collective) {
    for (int pass = collective.order.next(); pass >= 0; pass = collective.order.next()) start(collective.first + pass);
    if (!collective.order.finished()) return;
    const auto at = std::find(live_.begin(), live_.end(), collective.id);
    if (at == live_.end()) return;  // told before
    finished_.push_back(*at);
    live_.erase(at);
}

void Network::start(int id) {
    Flow& flow = flows_[id];
    Collective& collective = of(flow);
    const Pass& pass = collective.movement->schedule.passes[flow.pass];
    collective.pass_start_s[flow.pass] = now_;
    flow.since_s = now_;
    if (flow.work == 0 || pass.hops() == 0) {
        flow.phase = Phase::kDraining;
        push(now_, Kind::kComplete, id);
        return collective.order.free(pass.channel);
    }
    flow.phase = Phase::kStalled;
    rebuild(id);
    stall_or_resume(id);
}

void Network::rebuild(int id) {
    if (flows_[id].phase == Phase::kRunning) leave_ports(id);
    flows_[id].shape = shape_of(flows_[id]);
}

// Passes of movements whose connections have not moved share their shape as long as no port changes.
std::shared_ptr<const Shape> Network::shape_of(const Flow& flow) {
    const Collective& collective = of(flow);
    if (collective.moved) return new_shape(flow);
    Movement::Cached& cached = collective.movement->shapes[flow.pass];
    if (cached.state != state_) cached = {state_, new_shape(flow)};
    return cached.shape;
}

std::shared_ptr<Shape> Network::new_shape(const Flow& flow) {
    const Collective& collective = of(flow);
    const std::vector<std::int64_t>& bytes = collective.movement->hop_bytes[flow.pass];
    const Hops& hops = collective.hops();
    auto shape = std::make_shared<Shape>();
    const std::vector<int>& route = hops.of_pass(flow.pass);
    for (std::size_t pos = 0; pos < route.size(); ++pos)
        if (bytes[pos] != 0)
            add_loads(*shape, hops, route[pos], static_cast<double>(bytes[pos]) / flow.work,
                      collective.movement->copies);
    for (const Load& load : shape->loads) load_slot_[load.port] = -1;
    shape->pipeline = pipeline_of(cluster_, collective.movement->schedule, hops, flow.pass, bytes, planning_);
    return shape;
}

// Adds what a hop takes. Folded ports meet the same flow many times; it counts once, with the sum.
void Network::add_loads(Shape& shape, const Hops& hops, int h, double bytes_per_byte, double copies) {
    const Hop& hop = hops.at(h);
    for (const Lane& lane : hop.lanes) {
        const LanePath path = hops.path(hop, lane);
        const double moved = bytes_per_byte * lane.share;
        for (int i = 0; i < path.count; ++i) {
            const int port = fold_.of(path.use[i].port);
            const double share = fold_.share(path.use[i].port, copies);
            int& slot = load_slot_[port];
            if (slot < 0 || !fold_.folds()) {
                slot = static_cast<int>(shape.loads.size());
                shape.loads.push_back({port, 0});
                shape.payload.push_back(0);
            }
            shape.loads[slot].bytes_per_byte += path.use[i].bytes_per_byte * moved * share;
            shape.payload[slot] += moved * share;
        }
    }
}

// The bucket is empty: the port goes on at its rate, and its flows serialise their chunks at that rate.
void Network::on_port_dry(int port) {
    shape_[port].run_dry(now_);
    touch_port(port);
    for (int id : on_port_[port]) {
        Flow& flow = flows_[id];
        if (flow.pass >= 0) flow.shape = shape_of(flow);
    }
}

void Network::join_ports(int id) {
    Flow& flow = flows_[id];
    flow.phase = Phase::kRunning;
    flow.since_s = now_;
    for (const Load& load : flow.shape->loads) on_port_[load.port].push_back(id);
    touch(id);
}

// Takes a running flow off its ports; those who shared them get new rates.
void Network::leave_ports(int id) {
    Flow& flow = flows_[id];
    advance(id);
    for (const Load& load : flow.shape->loads) {
        shape_[load.port].advance(now_, usage_[load.port]);
        usage_[load.port] = std::max(0.0, usage_[load.port] - load.bytes_per_byte * flow.rate);
        std::erase(on_port_[load.port], id);
    }
    for (const Load& load : flow.shape->loads) touch_port(load.port);
    if (flow.rate > 0) flow.last_rate = flow.rate;
    flow.rate = 0;
    flow.phase = Phase::kStalled;
    ++flow.version;
}

void Network::drained(int id) {
    leave_ports(id);
    Flow& flow = flows_[id];
    flow.done = flow.work;
    if (flow.pass < 0) {  // a retransmission: its parent may go on
        flow.phase = Phase::kComplete;
        if (--flows_[flow.parent].retransmissions == 0) stall_or_resume(flow.parent);
        return;
    }
    flow.phase = Phase::kDraining;
    Collective& collective = of(flow);
    collective.order.free(collective.movement->schedule.passes[flow.pass].channel);
    push(now_ + flow.shape->pipeline.fill_s, Kind::kComplete, id);
    push(now_, Kind::kRelease, flow.collective);
}

void Network::complete(int id) {
    Flow& flow = flows_[id];
    Collective& collective = of(flow);
    flow.phase = Phase::kComplete;
    flow.shape.reset();
    collective.pass_end_s[flow.pass] = now_;
    collective.order.complete(flow.pass);
    push(now_, Kind::kRelease, flow.collective);
}

void Network::advance(int id) {
    Flow& flow = flows_[id];
    const double moved = std::min(flow.rate * (now_ - flow.since_s), flow.work - flow.done);
    flow.since_s = now_;
    if (!(moved > 0)) return;
    flow.done += moved;
    const Shape& shape = *flow.shape;
    for (std::size_t i = 0; i < shape.loads.size(); ++i) {
        wire_[shape.loads[i].port] += shape.loads[i].bytes_per_byte * moved;
        payload_[shape.loads[i].port] += shape.payload[i] * moved;
    }
}

void Network::touch(int id) {
    if (flows_[id].phase == Phase::kRunning) advance(id);
    if (is_dirty_[id]) return;
    is_dirty_[id] = 1;
    dirty_.push_back(id);
}

void Network::touch_port(int port) {
    shape_[port].advance(now_, usage_[port]);
    capacity_[port] = shape_[port].capacity();
    if (planning_[port] != shape_[port].planning()) {
        planning_[port] = shape_[port].planning();
        ++state_;
    }
    for (int id : on_port_[port]) touch(id);
}

void Network::resolve() {
    seeds_.clear();
    seeds_.swap(dirty_);
    solved_.clear();
    for (int id : seeds_) is_dirty_[id] = 0;
    std::sort(seeds_.begin(), seeds_.end());
    for (int seed : seeds_) {
        if (flows_[seed].phase != Phase::kRunning || is_dirty_[seed]) continue;
        component_.assign(1, seed);
        is_dirty_[seed] = 1;
        for (std::size_t i = 0; i < component_.size(); ++i) {
            for (const Load& load : flows_[component_[i]].shape->loads) {
                if (port_seen_[load.port]) continue;
                port_seen_[load.port] = 1;
                for (int other : on_port_[load.port]) {
                    if (is_dirty_[other]) continue;
                    is_dirty_[other] = 1;
                    component_.push_back(other);
                }
            }
        }
        std::sort(component_.begin(), component_.end());
        solve_component();
        solved_.insert(solved_.end(), component_.begin(), component_.end());
        ++steps_;
    }
    for (int id : solved_) {  // only what was touched: a run may have many more flows than move at a time
        is_dirty_[id] = 0;
        for (const Load& load : flows_[id].shape->loads) port_seen_[load.port] = 0;
    }
    for (int nic : watched_)
        if (!triggers_[nic].empty()) watch_triggers(nic);
}

void Network::solve_component() {
    solved_ports_.clear();
    for (int id : component_) {
        advance(id);
        for (const Load& load : flows_[id].shape->loads) {
            if (port_seen_[load.port] == 2) continue;
            port_seen_[load.port] = 2;
            solved_ports_.push_back(load.port);
            shape_[load.port].advance(now_, usage_[load.port]);
            capacity_[load.port] = shape_[load.port].capacity();
            usage_[load.port] = 0;
        }
    }
    view_.clear();
    for (int id : component_) {
        const Flow& flow = flows_[id];
        const double cap = flow.pass < 0 ? kUnlimited : flow.shape->pipeline.cap;
        view_.push_back({flow.weight, cap, &flow.shape->loads});
    }
    if (sharing_ == Sharing::kByConnection) weigh_by_connection();
    solver_.solve(view_, capacity_, rates_);
    for (std::size_t i = 0; i < component_.size(); ++i) {
        Flow& flow = flows_[component_[i]];
        flow.rate = std::min(rates_[i], kInstant);
        ++flow.version;
        for (const Load& load : flow.shape->loads) usage_[load.port] += load.bytes_per_byte * flow.rate;
        if (flow.rate > 0)
            push(now_ + (flow.work - flow.done) / flow.rate, Kind::kDrained, component_[i], flow.version);
    }
    for (int port : solved_ports_) {
        const double dry = shape_[port].dry_in(usage_[port]);
        ++port_version_[port];
        if (std::isfinite(dry)) push(now_ + dry, Kind::kPortDry, port, port_version_[port]);
    }
}

// Scales the weights of each collective in the component so that its mean flow weighs one.
void Network::weigh_by_connection() {
    own_weight_.resize(collectives_.size());
    for (int id : component_) {
        auto& [sum, count] = own_weight_[flows_[id].collective];
        sum += flows_[id].weight;
        ++count;
    }
    for (std::size_t i = 0; i < component_.size(); ++i) {
        const auto& [sum, count] = own_weight_[flows_[component_[i]].collective];
        view_[i].weight *= count / sum;
    }
    for (int id : component_) own_weight_[flows_[id].collective] = {};
}

// Predicts when the NIC's busier direction reaches the byte count that its next event waits for.
void Network::watch_triggers(int nic) {
    ++trigger_version_[nic];
    if (triggers_[nic].empty()) return;
    const double goal = events_[triggers_[nic].front()].at_bytes;
    double soonest = kUnlimited;
    for (const int port : {nic_port(nic, 0), nic_port(nic, 1)}) {
        for (int id : on_port_[port]) advance(id);
        if (wire_[port] >= goal) soonest = 0;
        if (usage_[port] > 0) soonest = std::min(soonest, (goal - wire_[port]) / usage_[port]);
    }
    if (std::isfinite(soonest)) push(now_ + std::max(0.0, soonest), Kind::kByteTrigger, nic, trigger_version_[nic]);
}

void Network::count_bytes(Outcome& out) {
    for (std::size_t id = 0; id < flows_.size(); ++id)
        if (flows_[id].phase == Phase::kRunning) advance(static_cast<int>(id));
    for (int i = 0; i < ports_.nics; ++i) {
        out.out_wire.push_back(wire_[nic_port(i, 0)]);
        out.in_wire.push_back(wire_[nic_port(i, 1)]);
        out.out_payload.push_back(payload_[nic_port(i, 0)]);
        out.in_payload.push_back(payload_[nic_port(i, 1)]);
    }
}

NicCount Network::count(int nic) const {
    const int out = nic_port(nic, 0), in = nic_port(nic, 1);
    return {wire_[out], wire_[in], payload_[out], payload_[in]};
}

}  // namespace simai
