// Executes the traces of a job: compute streams, communicators, messages, over one network that may fail. Split over
// two files: executor.cpp runs traces from their start, executor_past.cpp what there is to going on from an earlier
// run.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "flow/network.hpp"
#include "model/limits.hpp"
#include "training/job.hpp"

namespace simai {

// Nodes of a rank run when their dependencies have ended. One compute node runs at a time per rank (and one of the
// CPU), the earliest in the trace first. A collective starts when every member has come to it; a communicator runs one
// at a time. The k-th collective of a member on a communicator meets the k-th of the others. A message starts when both
// ends are there; ends are matched in order on (tag, size).
class Executor {
  public:
    Executor(const Cluster& cluster, const Job& job, const std::vector<NicEvent>& events, Planner planner,
             JobReact react, const RunLimits& limits);
    JobOutcome run();

  private:
    static constexpr int kStreams = 2;  // GPU, CPU
    struct Graph {                      // of a trace, shared by its classes
        std::vector<std::uint32_t> offsets, dependents, waits_for;
        std::vector<int> turn;    // of a collective: how many came before on its communicator; of others 0
        std::vector<char> meets;  // by group role: whether there are collectives
    };
    struct Stream {
        std::priority_queue<int, std::vector<int>, std::greater<>> ready;
        bool busy = false;
    };
    struct RankState {
        const Graph* graph = nullptr;
        std::vector<std::uint32_t> waits_for;
        Stream streams[kStreams];
        int moving = 0;  // transfers of its own under way
        double since_s = 0;
        std::int64_t left = 0;
    };
    struct End {  // one rank's part in a transfer
        int rank_class = 0;
        int node = 0;
    };
    struct Meeting {
        std::vector<End> ends;
        double start_s = 0;
    };
    struct GroupState {
        std::vector<std::pair<int, int>> members;  // rank class and role
        std::map<int, Meeting> gathering;          // by turn
        std::deque<Meeting> waiting;               // all are there
        bool busy = false;
    };
    using MessageKey = std::tuple<int, int, std::int64_t, std::int64_t>;  // source and destination class, tag, bytes
    struct Mailbox {
        std::deque<End> sends, receives;
    };
    struct Transfer {
        Meeting meeting;
        int group = -1;  // -1: a message
    };
    struct Plan {
        PlanAnswer answer;
        std::unique_ptr<Movement> movement;
        bool paid = false;  // its one-off cost
    };
    struct Done {
        double time_s = 0;
        std::uint64_t sequence = 0;
        int rank_class = 0;
        int node = 0;  // kResumes: the class goes on
        double start_s = 0;
        bool operator>(const Done& o) const { return time_s != o.time_s ? time_s > o.time_s : sequence > o.sequence; }
    };

    struct Resumed {  // where a trace with a past goes on
        std::vector<std::uint32_t> waits_for;
        std::int64_t left = 0;
        std::vector<int> running;  // compute nodes, by their place in the past
        std::vector<int> ready;    // in the order in which all that they wait for had ended
    };
    static constexpr int kResumes = -1;

    const Graph& graph_of(const Trace& trace);
    void set_up();
    void set_up_past(int rank_class);
    const Resumed& resumed(const RankClass& one);
    void resume(int rank_class);
    bool paid_before(const Meeting& meeting, const PlanRequest& request) const;
    void keep_quiet_point(double next_s);
    QuietPoint quiet_point(double time_s);
    void end_instants();
    void issue(int rank_class, int node);
    void run_next(int rank_class, int stream);
    void compute_done(const Done& done);
    void come_to_collective(int rank_class, int node);
    void come_to_message(int rank_class, int node);
    void start_next(int group);
    void start_transfer(const PlanRequest& request, double copies, Transfer transfer);
    void end_transfer(Transfer& transfer);
    void end_node(int rank_class, int node);
    void settle(int rank_class);
    void record(int rank_class, int node, double start_s);
    Plan& plan(const PlanRequest& request, double copies);
    int epoch(double time_s) const;
    std::string who_waits() const;
    std::string describe(const End& end) const;
    const TraceNode& node_of(const End& end) const { return job_.ranks[end.rank_class].trace->nodes[end.node]; }
    JobOutcome finish();

    const Cluster& cluster_;
    const Job& job_;
    const std::vector<NicEvent>& events_;
    const Planner planner_;
    const RunLimits& limits_;
    Network network_;

    double now_ = 0;
    std::uint64_t sequence_ = 0;
    std::int64_t left_ = 0;
    std::map<const Trace*, std::unique_ptr<Graph>> graphs_;
    std::map<std::tuple<const Trace*, const Past*, double>, Resumed> resumed_;
    int under_way_ = 0;  // transfers
    bool held_met_ = false;
    std::optional<QuietPoint> before_events_;
    std::vector<RankState> ranks_;
    std::vector<GroupState> groups_;
    std::map<MessageKey, Mailbox> mail_;
    std::map<PlanRequest, Plan> plans_;
    std::vector<Transfer> transfers_;  // by number of the network's collective
    std::deque<Transfer> instant_;     // that have nothing to move
    std::priority_queue<Done, std::vector<Done>, std::greater<>> queue_;
    JobOutcome out_;
};

}  // namespace simai
