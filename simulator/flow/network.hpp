// What moves over the ports of a cluster: any number of collectives, each pass of them one flow. Split over two files:
// network.cpp moves flows, network_failover.cpp breaks and mends them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "failover/failover.hpp"
#include "flow/movement.hpp"
#include "flow/port_fold.hpp"
#include "flow/shaped_port.hpp"
#include "flow/solver.hpp"
#include "model/hops.hpp"
#include "model/outcome.hpp"
#include "model/pass_order.hpp"

namespace simai {

constexpr double kInstant = 1e18;  // bytes per second: a flow that nothing limits
constexpr double kNever = std::numeric_limits<double>::quiet_NaN();

enum class Phase { kWaiting, kRunning, kStalled, kDraining, kComplete };

// A pass in motion, or (pass < 0) the retransmission of what was in flight on a hop that broke.
struct Flow {
    int collective = -1;
    int pass = -1;
    int parent = -1;  // of a retransmission: the flow that waits for it
    Phase phase = Phase::kWaiting;
    int retransmissions = 0;  // still under way
    double work = 0;          // bytes of progress
    double done = 0;
    double rate = 0;
    double weight = 1;
    double since_s = 0;
    double last_rate = 0;  // before it stalled
    std::uint64_t version = 0;
    std::shared_ptr<const Shape> shape;
};

// One movement on its way. Its passes are the flows from `first` on.
struct Collective {
    Collective(int number, const Movement& what, int name, int first_flow)
        : id(number), tag(name), first(first_flow), movement(&what), order(what.schedule, true) {}

    const Hops& hops() const { return moved ? *moved : movement->hops; }
    int passes() const { return static_cast<int>(movement->schedule.passes.size()); }

    int id;
    int tag;  // what the caller calls it
    int first;
    const Movement* movement;
    std::unique_ptr<Hops> moved;  // once connections have migrated
    PassOrder order;
    std::vector<double> pass_start_s, pass_end_s;
};

// What a strategy answers when connections of the collectives with a tag have broken.
using NetworkReact = std::function<Reaction(const Broken&, int tag)>;

// How collectives share a port. Within one, weights are its passes'. Between several the mean pass of each that runs
// counts the same, as connections do; with kByWeight a pass of many bytes would push aside a message of few.
enum class Sharing { kByWeight, kByConnection };

class Network {
  public:
    Network(const Cluster& cluster, const std::vector<NicEvent>& events, NetworkReact react, PortFold fold = {},
            Sharing sharing = Sharing::kByWeight);

    // Starts a movement at the present time, which must not be before that of the last step; returns its number.
    // The movement has to outlive it.
    int begin(const Movement& movement, int tag, double now_s, double delay_s);

    bool idle() const { return queue_.empty(); }
    double next_s() const { return queue_.top().time_s; }
    // Handles all that happens at the time of the next event.
    void step();
    // Collectives that have ended since this was last asked for, in the order of their ends.
    std::vector<int> take_finished() { return std::exchange(finished_, {}); }
    const Collective& collective(int id) const { return *collectives_[id]; }
    // Forgets an ended collective.
    void drop(int id) { collectives_[id].reset(); }

    bool stopped() const { return stopped_; }
    Status status() const { return status_; }
    const std::string& reason() const { return reason_; }
    double now_s() const { return now_; }
    std::int64_t steps() const { return steps_; }
    const std::vector<LogEntry>& log() const { return log_; }
    const std::vector<double>& event_time_s() const { return event_time_s_; }
    Phase phase(int collective, int pass) const { return flows_[collectives_[collective]->first + pass].phase; }
    // Bytes per NIC so far; of a folded port those of each port of its class.
    void count_bytes(Outcome& out);
    // The same of one NIC, while nothing moves.
    NicCount count(int nic) const;

  private:
    enum class Kind { kNicEvent, kDetected, kRelease, kDrained, kComplete, kPortDry, kByteTrigger };
    struct Event {
        double time_s = 0;
        std::uint64_t sequence = 0;
        Kind kind = Kind::kRelease;
        int id = 0;
        std::uint64_t version = 0;
        bool operator>(const Event& o) const { return time_s != o.time_s ? time_s > o.time_s : sequence > o.sequence; }
    };

    void handle(const Event& event);
    void on_nic_event(int id);
    void on_detected(int nic);
    bool mend(Collective& collective, const Broken& broken);
    void release_ready(Collective& collective);
    void start(int flow);
    void drained(int flow);
    void complete(int flow);
    void stall_or_resume(int flow);
    void retransmit(int flow, int hop, double lost);
    void rebuild(int flow);
    std::shared_ptr<const Shape> shape_of(const Flow& flow);
    std::shared_ptr<Shape> new_shape(const Flow& flow);
    void add_loads(Shape& shape, const Hops& hops, int hop, double bytes_per_byte, double copies);
    void on_port_dry(int port);
    void join_ports(int flow);
    void leave_ports(int flow);
    void cancel_retransmissions(int nic);
    void leave_dead_nics(Collective& collective);
    int dead_nic(const Hop& hop) const;
    void resolve();
    void solve_component();
    void weigh_by_connection();
    void advance(int flow);
    void touch(int flow);
    void touch_port(int port);
    void watch_triggers(int nic);
    bool uses(const Collective& collective, int pass, int nic) const;
    double lost_window(const Flow& flow, int position) const;
    bool needed(const Collective& collective, int hop) const;
    int nic_port(int nic, int direction) const { return fold_.of(ports_.nic_out(nic) + direction); }
    Collective& of(const Flow& flow) { return *collectives_[flow.collective]; }
    const Collective& of(const Flow& flow) const { return *collectives_[flow.collective]; }
    void stop(Status status, std::string reason) {
        stopped_ = true;
        status_ = status;
        reason_ = std::move(reason);
    }
    void push(double time_s, Kind kind, int id, std::uint64_t version = 0) {
        queue_.push(Event{time_s, sequence_++, kind, id, version});
    }

    const Cluster& cluster_;
    const std::vector<NicEvent>& events_;
    const NetworkReact react_;
    const PortFold fold_;
    const Sharing sharing_;
    Ports ports_;
    NicStates states_;
    MaxMinSolver solver_;

    std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
    std::uint64_t sequence_ = 0;
    double now_ = 0;
    bool stopped_ = false;
    Status status_ = Status::kDone;
    std::string reason_;
    std::int64_t steps_ = 0;
    std::vector<LogEntry> log_;
    std::vector<double> event_time_s_;

    std::vector<std::unique_ptr<Collective>> collectives_;
    std::vector<int> live_, finished_;
    std::vector<Flow> flows_;
    std::vector<int> retransmissions_;  // flows that have resent something
    std::uint64_t state_ = 1;           // changes with the rates that plans count on
    std::vector<ShapedPort> shape_;
    std::vector<double> capacity_, planning_;     // per port: now; as ShapedPort::planning
    std::vector<double> usage_, wire_, payload_;  // per port: bytes per second now; bytes so far
    std::vector<std::vector<int>> on_port_;       // running flows by port
    std::vector<std::uint64_t> nic_version_, port_version_;
    std::vector<std::vector<int>> triggers_;  // per NIC: its events that wait for a byte count
    std::vector<int> watched_;                // NICs that have such events
    std::vector<std::uint64_t> trigger_version_;
    std::vector<int> dirty_;
    std::vector<char> is_dirty_, port_seen_;
    // Buffers of `resolve`: flows that were touched, those of a component, those of all components, and for the solver.
    std::vector<int> seeds_, component_, solved_, solved_ports_;
    std::vector<SolverFlow> view_;
    std::vector<double> rates_;
    std::vector<std::pair<double, int>> own_weight_;  // per collective: sum and number of weights, empty in between
    std::vector<int> load_slot_;                      // per port: where a shape in the making has it, -1 in between
};

}  // namespace simai
