#include "flow/fluid.hpp"

#include "flow/pipeline.hpp"

namespace simai {

Outcome FlowRun::run() {
    set_up();
    while (!order_.finished()) {
        if (queue_.empty() || out_.steps >= limits_.max_steps || queue_.top().time_s > limits_.max_time_s) {
            stop(Status::kUnfinished, "waits for ever: " + who_waits());
            break;
        }
        now_ = queue_.top().time_s;
        while (!queue_.empty() && queue_.top().time_s <= now_ && !stopped_) {
            const Event event = queue_.top();
            queue_.pop();
            handle(event);
        }
        if (stopped_) break;
        resolve();
    }
    return finish();
}

void FlowRun::set_up() {
    const int n = static_cast<int>(schedule_.passes.size());
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
    port_version_.assign(ports_.count(), 0);
    nic_version_.assign(nics, 0);
    trigger_version_.assign(nics, 0);
    triggers_.resize(nics);
    out_.pass_start_s.assign(n, kNever);
    out_.pass_end_s.assign(n, kNever);
    out_.event_time_s.assign(events_.size(), kNever);

    flows_.resize(n);
    is_dirty_.assign(n, 0);
    hop_bytes_.resize(n);
    for (int i = 0; i < n; ++i) {
        const Pass& pass = schedule_.passes[i];
        flows_[i].pass = i;
        flows_[i].work = static_cast<double>(pass.bytes());
        flows_[i].weight = pass.weight > 0 ? pass.weight : 1;
        hop_bytes_[i] = schedule_.hop_bytes(pass);
        hops_.require_bound(i, hop_bytes_[i]);
    }
    for (std::size_t e = 0; e < events_.size(); ++e) {
        if (events_[e].at_bytes >= 0)
            triggers_[events_[e].nic].push_back(static_cast<int>(e));
        else
            push(std::max(0.0, events_[e].time_s), Kind::kNicEvent, static_cast<int>(e));
    }
    for (auto& waiting : triggers_)
        std::stable_sort(waiting.begin(), waiting.end(),
                         [this](int a, int b) { return events_[a].at_bytes < events_[b].at_bytes; });
    push(cluster_.base_latency_s, Kind::kRelease, 0);
}

void FlowRun::handle(const Event& event) {
    switch (event.kind) {
        case Kind::kNicEvent:
            on_nic_event(event.id);
            break;
        case Kind::kDetected:
            if (event.version == nic_version_[event.id]) on_detected(event.id);
            break;
        case Kind::kRelease:
            release_ready();
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

void FlowRun::release_ready() {
    for (int pass = order_.next(); pass >= 0; pass = order_.next()) start(pass);
}

void FlowRun::start(int id) {
    Flow& flow = flows_[id];
    out_.pass_start_s[id] = now_;
    flow.since_s = now_;
    if (flow.work == 0 || schedule_.passes[id].hops() == 0) {
        flow.phase = Phase::kDraining;
        push(now_, Kind::kComplete, id);
        return order_.free(schedule_.passes[id].channel);
    }
    flow.phase = Phase::kStalled;
    rebuild(id);
    stall_or_resume(id);
}

void FlowRun::rebuild(int id) {
    Flow& flow = flows_[id];
    if (flow.phase == Phase::kRunning) leave_ports(id);
    flow.loads.clear();
    flow.payload.clear();
    const std::vector<int>& route = hops_.of_pass(id);
    for (std::size_t pos = 0; pos < route.size(); ++pos) {
        if (hop_bytes_[id][pos] == 0) continue;
        const Hop& hop = hops_.at(route[pos]);
        for (const Lane& lane : hop.lanes) {
            const LanePath path = hops_.path(hop, lane);
            const double moved = static_cast<double>(hop_bytes_[id][pos]) * lane.share / flow.work;
            for (int i = 0; i < path.count; ++i) {
                flow.loads.push_back({path.use[i].port, path.use[i].bytes_per_byte * moved});
                flow.payload.push_back(moved);
            }
        }
    }
    set_pipeline(id);
}

void FlowRun::set_pipeline(int id) {
    const Pipeline pipe = pipeline_of(cluster_, schedule_, hops_, id, hop_bytes_[id], planning_);
    flows_[id].cap = pipe.cap;
    flows_[id].fill_s = pipe.fill_s;
}

// The bucket is empty: the port goes on at its rate, and its flows serialise their chunks at that rate.
void FlowRun::on_port_dry(int port) {
    shape_[port].run_dry(now_);
    touch_port(port);
    for (int id : on_port_[port])
        if (flows_[id].pass >= 0) set_pipeline(id);
}

void FlowRun::join_ports(int id) {
    Flow& flow = flows_[id];
    flow.phase = Phase::kRunning;
    flow.since_s = now_;
    for (const Load& load : flow.loads) on_port_[load.port].push_back(id);
    touch(id);
}

// Takes a running flow off its ports; those who shared them get new rates.
void FlowRun::leave_ports(int id) {
    Flow& flow = flows_[id];
    advance(id);
    for (const Load& load : flow.loads) {
        shape_[load.port].advance(now_, usage_[load.port]);
        usage_[load.port] = std::max(0.0, usage_[load.port] - load.bytes_per_byte * flow.rate);
        std::erase(on_port_[load.port], id);
    }
    for (const Load& load : flow.loads) touch_port(load.port);
    if (flow.rate > 0) flow.last_rate = flow.rate;
    flow.rate = 0;
    flow.phase = Phase::kStalled;
    ++flow.version;
}

void FlowRun::drained(int id) {
    leave_ports(id);
    Flow& flow = flows_[id];
    flow.done = flow.work;
    if (flow.pass < 0) {  // a retransmission: its parent may go on
        flow.phase = Phase::kComplete;
        if (--flows_[flow.parent].retransmissions == 0) stall_or_resume(flow.parent);
        return;
    }
    flow.phase = Phase::kDraining;
    order_.free(schedule_.passes[flow.pass].channel);
    push(now_ + flow.fill_s, Kind::kComplete, id);
    push(now_, Kind::kRelease, 0);
}

void FlowRun::complete(int id) {
    flows_[id].phase = Phase::kComplete;
    out_.pass_end_s[id] = now_;
    order_.complete(id);
    push(now_, Kind::kRelease, 0);
}

void FlowRun::advance(int id) {
    Flow& flow = flows_[id];
    const double moved = std::min(flow.rate * (now_ - flow.since_s), flow.work - flow.done);
    flow.since_s = now_;
    if (!(moved > 0)) return;
    flow.done += moved;
    for (std::size_t i = 0; i < flow.loads.size(); ++i) {
        wire_[flow.loads[i].port] += flow.loads[i].bytes_per_byte * moved;
        payload_[flow.loads[i].port] += flow.payload[i] * moved;
    }
}

void FlowRun::touch(int id) {
    if (flows_[id].phase == Phase::kRunning) advance(id);
    if (is_dirty_[id]) return;
    is_dirty_[id] = 1;
    dirty_.push_back(id);
}

void FlowRun::touch_port(int port) {
    shape_[port].advance(now_, usage_[port]);
    capacity_[port] = shape_[port].capacity();
    planning_[port] = shape_[port].planning();
    for (int id : on_port_[port]) touch(id);
}

void FlowRun::resolve() {
    std::vector<int> component, solved;
    std::vector<int> seeds;
    seeds.swap(dirty_);
    for (int id : seeds) is_dirty_[id] = 0;
    std::sort(seeds.begin(), seeds.end());
    for (int seed : seeds) {
        if (flows_[seed].phase != Phase::kRunning || is_dirty_[seed]) continue;
        component.assign(1, seed);
        is_dirty_[seed] = 1;
        for (std::size_t i = 0; i < component.size(); ++i) {
            for (const Load& load : flows_[component[i]].loads) {
                if (port_seen_[load.port]) continue;
                port_seen_[load.port] = 1;
                for (int other : on_port_[load.port]) {
                    if (is_dirty_[other]) continue;
                    is_dirty_[other] = 1;
                    component.push_back(other);
                }
            }
        }
        std::sort(component.begin(), component.end());
        solve_component(component);
        solved.insert(solved.end(), component.begin(), component.end());
        ++out_.steps;
    }
    for (int id : solved) {  // only what was touched: a run may have many more flows than move at a time
        is_dirty_[id] = 0;
        for (const Load& load : flows_[id].loads) port_seen_[load.port] = 0;
    }
    for (int nic = 0; nic < ports_.nics; ++nic)
        if (!triggers_[nic].empty()) watch_triggers(nic);
}

void FlowRun::solve_component(const std::vector<int>& component) {
    std::vector<int> ports;
    for (int id : component) {
        advance(id);
        for (const Load& load : flows_[id].loads) {
            if (port_seen_[load.port] == 2) continue;
            port_seen_[load.port] = 2;
            ports.push_back(load.port);
            shape_[load.port].advance(now_, usage_[load.port]);
            capacity_[load.port] = shape_[load.port].capacity();
            usage_[load.port] = 0;
        }
    }
    std::vector<SolverFlow> view;
    view.reserve(component.size());
    for (int id : component) view.push_back({flows_[id].weight, flows_[id].cap, &flows_[id].loads});
    std::vector<double> rates;
    solver_.solve(view, capacity_, rates);
    for (std::size_t i = 0; i < component.size(); ++i) {
        Flow& flow = flows_[component[i]];
        flow.rate = std::min(rates[i], kInstant);
        ++flow.version;
        for (const Load& load : flow.loads) usage_[load.port] += load.bytes_per_byte * flow.rate;
        if (flow.rate > 0) push(now_ + (flow.work - flow.done) / flow.rate, Kind::kDrained, component[i], flow.version);
    }
    for (int port : ports) {
        const double dry = shape_[port].dry_in(usage_[port]);
        ++port_version_[port];
        if (std::isfinite(dry)) push(now_ + dry, Kind::kPortDry, port, port_version_[port]);
    }
}

// Predicts when the NIC's busier direction reaches the byte count that its next event waits for.
void FlowRun::watch_triggers(int nic) {
    ++trigger_version_[nic];
    if (triggers_[nic].empty()) return;
    const double goal = events_[triggers_[nic].front()].at_bytes;
    double soonest = kUnlimited;
    for (const int port : {ports_.nic_out(nic), ports_.nic_in(nic)}) {
        for (int id : on_port_[port]) advance(id);
        if (wire_[port] >= goal) soonest = 0;
        if (usage_[port] > 0) soonest = std::min(soonest, (goal - wire_[port]) / usage_[port]);
    }
    if (std::isfinite(soonest)) push(now_ + std::max(0.0, soonest), Kind::kByteTrigger, nic, trigger_version_[nic]);
}

std::string FlowRun::who_waits() const {
    std::string who;
    int named = 0;
    for (std::size_t i = 0; i < schedule_.passes.size() && named < 4; ++i) {
        if (flows_[i].phase == Phase::kComplete) continue;
        who += (named++ ? ", " : "") + std::string("pass ") + std::to_string(i) +
               (flows_[i].phase == Phase::kStalled ? " (its connection is down)" : " (its predecessors)");
    }
    return who;
}

Outcome FlowRun::finish() {
    for (std::size_t id = 0; id < flows_.size(); ++id)
        if (flows_[id].phase == Phase::kRunning) advance(static_cast<int>(id));
    out_.elapsed_s = now_;
    for (int i = 0; i < ports_.nics; ++i) {
        out_.out_wire.push_back(wire_[ports_.nic_out(i)]);
        out_.in_wire.push_back(wire_[ports_.nic_in(i)]);
        out_.out_payload.push_back(payload_[ports_.nic_out(i)]);
        out_.in_payload.push_back(payload_[ports_.nic_in(i)]);
    }
    return std::move(out_);
}

Outcome run_flow(const Cluster& cluster, const Schedule& schedule, const Binding& binding,
                 const std::vector<NicEvent>& events, const React& react, const RunLimits& limits) {
    validate(cluster, events);
    return FlowRun(cluster, schedule, binding, events, react, limits).run();
}

}  // namespace simai
