// A job of many ranks as the executor sees it: classes of equal ranks, of which one each is simulated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "flow/port_fold.hpp"
#include "model/outcome.hpp"
#include "trace/trace.hpp"

namespace simai {

// What became of the nodes of a trace in an earlier run. Those that `ended` did so before all times at which it can be
// resumed; of the `nodes` that ended later, and of others as far as anyone asks, it says when they began and ended.
struct Past {
    std::vector<char> ended;
    std::vector<int> nodes;
    std::vector<double> start_s, end_s;
};

// Ranks that do the same at the same time. `rank` is the one that is simulated, the peers are its own. With a past the
// class goes on at `resume_s`, a time at which none of its transfers was under way: what had ended by then is not run
// again.
struct RankClass {
    const Trace* trace = nullptr;
    int rank = 0;
    double count = 1;             // ranks of the class
    std::vector<int> groups;      // role -> number of a GroupClass
    std::vector<int> peers;       // role -> number of the peer's RankClass
    std::vector<int> peer_ranks;  // role -> rank
    bool recorded = false;        // whether its spans are kept
    std::shared_ptr<const Past> past;
    double resume_s = 0;
};

// Communicators whose members are of the same classes. `size` ranks each, `copies` of them. A held one never starts.
struct GroupClass {
    std::string name;  // of one of them, for messages
    int size = 1;
    double copies = 1;
    bool held = false;
};

// How long a compute node takes whose trace does not say: max(num_ops / flops, tensor bytes / rate) + floor.
struct Roofline {
    double flops_per_s = 0;  // 0: nobody knows; such a node takes no time
    double bytes_per_s = 0;
    double floor_s = 0;

    double seconds(const TraceNode& node) const {
        const bool known = node.duration_s > 0 || flops_per_s <= 0 || (node.num_ops <= 0 && node.tensor_bytes <= 0);
        if (known) return node.duration_s;
        const double compute = static_cast<double>(node.num_ops) / flops_per_s;
        return std::max(compute, static_cast<double>(node.tensor_bytes) / bytes_per_s) + floor_s;
    }
};

struct Job {
    std::vector<RankClass> ranks;
    std::vector<GroupClass> groups;
    PortFold fold;
    // When the members' knowledge of the cluster changes, ascending: plans are asked for by how many changes are known.
    std::vector<double> known_s;
    Roofline roofline;
    bool quiet_points = false;         // whether to keep them
    std::vector<int> quiet_nics = {};  // whose bytes they tell
};

// What the executor asks a strategy for: a collective of a group class, or (group < 0) a message between two ranks.
struct PlanRequest {
    int group = -1;
    int src = -1;
    int dst = -1;
    CommType comm = CommType::kNone;
    std::int64_t bytes = 0;  // comm_size
    int epoch = 0;           // changes of `known_s` that have happened
    auto operator<=>(const PlanRequest&) const = default;
};

// `tag` is what the strategy calls the plan when its connections break. Both pointers stay valid for the whole run.
struct PlanAnswer {
    const Schedule* schedule = nullptr;
    const Binding* binding = nullptr;
    double one_off_s = 0;
    int tag = 0;
};

using Planner = std::function<PlanAnswer(const PlanRequest&)>;
using JobReact = std::function<Reaction(const Broken&, int tag)>;

// A compute node while it ran, or a communication node while its bytes moved.
struct Span {
    int rank_class = 0;
    int node = 0;
    double start_s = 0;
    double end_s = 0;
};

// Where the time of a class went. The four parts of the run that follow make its end: computing; idle while bytes of
// its own moved; idle while it waited for others; nothing left to do.
struct ClassTimes {
    double end_s = 0;
    double compute_s = 0;
    double exposed_s = 0;
    double waiting_s = 0;
    double communication_s = 0;     // bytes of its own moved, hidden or not
    std::vector<double> by_role_s;  // of each group role, then of each peer role: time of its transfers, summed
};

// What had been done by a time at which no transfer was under way, that is neither the start nor the end of anything.
struct QuietPoint {
    double time_s = 0;
    std::vector<ClassTimes> classes;
    std::vector<NicCount> nics;
};

struct JobOutcome {
    Outcome network;  // status, reason, log, bytes per NIC; elapsed_s is the end of the last rank
    std::vector<ClassTimes> classes;
    std::vector<Span> spans;
    std::vector<QuietPoint> quiet_points;
    std::int64_t nodes = 0;
    std::int64_t collectives = 0;
};

}  // namespace simai
