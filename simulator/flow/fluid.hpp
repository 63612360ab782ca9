// The state of a fluid run. Split over two files: fluid.cpp moves flows, fluid_failover.cpp breaks and mends them.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <string>
#include <vector>

#include "failover/failover.hpp"
#include "flow/flow_run.hpp"
#include "flow/shaped_port.hpp"
#include "flow/solver.hpp"
#include "model/hops.hpp"
#include "model/pass_order.hpp"

namespace simai {

constexpr double kInstant = 1e18;  // bytes per second: a flow that nothing limits
constexpr double kNever = std::numeric_limits<double>::quiet_NaN();

enum class Phase { kWaiting, kRunning, kStalled, kDraining, kComplete };

// A pass in motion, or (pass < 0) the retransmission of what was in flight on a hop that broke.
struct Flow {
    int pass = -1;
    int parent = -1;  // of a retransmission: the flow that waits for it
    Phase phase = Phase::kWaiting;
    double work = 0;  // bytes of progress
    double done = 0;
    double rate = 0;
    double weight = 1;
    double cap = kUnlimited;
    double fill_s = 0;
    double since_s = 0;
    double last_rate = 0;     // before it stalled
    int retransmissions = 0;  // still under way
    std::uint64_t version = 0;
    std::vector<Load> loads;      // on the wire
    std::vector<double> payload;  // of the same entries
};

enum class Kind { kNicEvent, kDetected, kRelease, kDrained, kComplete, kPortDry, kByteTrigger };

struct Event {
    double time_s = 0;
    std::uint64_t sequence = 0;
    Kind kind = Kind::kRelease;
    int id = 0;
    std::uint64_t version = 0;
    bool operator>(const Event& o) const { return time_s != o.time_s ? time_s > o.time_s : sequence > o.sequence; }
};

class FlowRun {
  public:
    FlowRun(const Cluster& cluster, const Schedule& schedule, const Binding& binding,
            const std::vector<NicEvent>& events, const React& react, const RunLimits& limits)
        : cluster_(cluster),
          schedule_(schedule),
          events_(events),
          react_(react),
          limits_(limits),
          ports_(cluster),
          hops_(cluster, schedule, binding),
          states_(cluster),
          order_(schedule, true),
          solver_(ports_.count()) {}

    Outcome run();

  private:
    void set_up();
    void handle(const Event& event);
    void on_nic_event(int id);
    void on_detected(int nic);
    void release_ready();
    void start(int flow);
    void drained(int flow);
    void complete(int flow);
    void stall_or_resume(int flow);
    void retransmit(int flow, int hop, double lost);
    void rebuild(int flow);
    void set_pipeline(int flow);
    void on_port_dry(int port);
    void join_ports(int flow);
    void leave_ports(int flow);
    void cancel_retransmissions(int nic);
    void resolve();
    void solve_component(const std::vector<int>& flows);
    void advance(int flow);
    void touch(int flow);
    void touch_port(int port);
    void watch_triggers(int nic);
    bool uses(int pass, int nic) const;
    double lost_window(const Flow& flow, int position) const;
    bool needed(int hop) const;
    std::string who_waits() const;
    void stop(Status status, std::string reason) {
        stopped_ = true;
        out_.status = status;
        out_.reason = std::move(reason);
    }
    void push(double time_s, Kind kind, int id, std::uint64_t version = 0) {
        queue_.push(Event{time_s, sequence_++, kind, id, version});
    }
    Outcome finish();

    const Cluster& cluster_;
    const Schedule& schedule_;
    const std::vector<NicEvent>& events_;
    const React& react_;
    const RunLimits& limits_;
    Ports ports_;
    Hops hops_;
    NicStates states_;
    PassOrder order_;
    MaxMinSolver solver_;

    std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
    std::uint64_t sequence_ = 0;
    double now_ = 0;
    bool stopped_ = false;
    std::vector<Flow> flows_;
    std::vector<std::vector<std::int64_t>> hop_bytes_;  // per pass and position of its route
    std::vector<ShapedPort> shape_;
    std::vector<double> capacity_, planning_;     // per port: now; as ShapedPort::planning
    std::vector<double> usage_, wire_, payload_;  // per port: bytes per second now; bytes so far
    std::vector<std::vector<int>> on_port_;       // running flows by port
    std::vector<std::uint64_t> nic_version_, port_version_;
    std::vector<std::vector<int>> triggers_;  // per NIC: its events that wait for a byte count
    std::vector<std::uint64_t> trigger_version_;
    std::vector<int> dirty_;
    std::vector<char> is_dirty_, port_seen_;
    Outcome out_;
};

}  // namespace simai
