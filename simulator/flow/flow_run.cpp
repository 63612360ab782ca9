#include "flow/flow_run.hpp"

#include "flow/network.hpp"

namespace simai {
namespace {

std::string who_waits(const Network& network, int id) {
    const Collective& collective = network.collective(id);
    std::string who;
    int named = 0;
    for (int pass = 0; pass < collective.passes() && named < 4; ++pass) {
        const Phase phase = network.phase(id, pass);
        if (phase == Phase::kComplete) continue;
        who += (named++ ? ", " : "") + std::string("pass ") + std::to_string(pass) +
               (phase == Phase::kStalled ? " (its connection is down)" : " (its predecessors)");
    }
    return who;
}

}  // namespace

Outcome run_flow(const Cluster& cluster, const Schedule& schedule, const Binding& binding,
                 const std::vector<NicEvent>& events, const React& react, const RunLimits& limits) {
    const Movement movement(cluster, schedule, binding);
    Network network(cluster, events,
                    react ? [&react](const Broken& broken, int) { return react(broken); } : NetworkReact{});
    Outcome out;
    const int id = network.begin(movement, 0, 0, cluster.base_latency_s);
    bool finished = schedule.passes.empty();
    while (!finished && !network.stopped()) {
        if (network.idle() || network.steps() >= limits.max_steps || network.next_s() > limits.max_time_s) {
            out.status = Status::kUnfinished;
            out.reason = "waits for ever: " + who_waits(network, id);
            break;
        }
        network.step();
        finished = !network.take_finished().empty();
    }
    if (network.stopped()) {
        out.status = network.status();
        out.reason = network.reason();
    }
    network.count_bytes(out);
    out.elapsed_s = network.now_s();
    out.pass_start_s = network.collective(id).pass_start_s;
    out.pass_end_s = network.collective(id).pass_end_s;
    out.event_time_s = network.event_time_s();
    out.log = network.log();
    out.steps = network.steps();
    return out;
}

}  // namespace simai
