#include "training/executor.hpp"

#include <algorithm>
#include <stdexcept>

namespace simai {

Executor::Executor(const Cluster& cluster, const Job& job, const std::vector<NicEvent>& events, Planner planner,
                   JobReact react, const RunLimits& limits)
    : cluster_(cluster),
      job_(job),
      events_(events),
      planner_(std::move(planner)),
      limits_(limits),
      network_(cluster, events_, std::move(react), job.fold, Sharing::kByConnection) {}

JobOutcome Executor::run() {
    set_up();
    while (end_instants(), left_ > 0 && !network_.stopped()) {
        const double own = queue_.empty() ? kUnlimited : queue_.top().time_s;
        const double net = network_.idle() ? kUnlimited : network_.next_s();
        const double next = std::min(own, net);
        if (job_.quiet_points) keep_quiet_point(next);
        if (!(next <= limits_.max_time_s) || network_.steps() >= limits_.max_steps) {
            out_.network.status = Status::kUnfinished;
            out_.network.reason = who_waits();
            break;
        }
        now_ = next;
        if (own <= net) {
            const Done done = queue_.top();
            queue_.pop();
            compute_done(done);
        } else {
            network_.step();
            for (int id : network_.take_finished()) {
                network_.drop(id);
                end_transfer(transfers_[id]);
            }
        }
    }
    return finish();
}

// Transfers that have nothing to move end at once; each may make others ready.
void Executor::end_instants() {
    while (!instant_.empty()) {
        Transfer transfer = std::move(instant_.front());
        instant_.pop_front();
        end_transfer(transfer);
    }
}

const Executor::Graph& Executor::graph_of(const Trace& trace) {
    std::unique_ptr<Graph>& graph = graphs_[&trace];
    if (graph) return *graph;
    graph = std::make_unique<Graph>();
    const std::size_t n = trace.nodes.size();
    graph->waits_for.resize(n);
    graph->offsets.assign(n + 1, 0);
    graph->dependents.resize(trace.deps.size());
    graph->turn.assign(n, 0);
    std::vector<int> turns(trace.groups.size(), 0);
    graph->meets.assign(trace.groups.size(), 0);
    for (std::size_t i = 0; i < n; ++i) {
        graph->waits_for[i] = trace.dep_offsets[i + 1] - trace.dep_offsets[i];
        for (const std::uint32_t before : trace.deps_of(i)) ++graph->offsets[before + 1];
        if (trace.nodes[i].type != NodeType::kColl) continue;
        graph->turn[i] = turns[trace.nodes[i].group]++;
        graph->meets[trace.nodes[i].group] = 1;
    }
    for (std::size_t i = 0; i < n; ++i) graph->offsets[i + 1] += graph->offsets[i];
    std::vector<std::uint32_t> at(graph->offsets.begin(), graph->offsets.end() - 1);
    for (std::size_t i = 0; i < n; ++i)
        for (const std::uint32_t before : trace.deps_of(i))
            graph->dependents[at[before]++] = static_cast<std::uint32_t>(i);
    return *graph;
}

void Executor::set_up() {
    ranks_.resize(job_.ranks.size());
    groups_.resize(job_.groups.size());
    out_.classes.resize(job_.ranks.size());
    for (std::size_t c = 0; c < job_.ranks.size(); ++c) {
        const RankClass& one = job_.ranks[c];
        RankState& state = ranks_[c];
        state.graph = &graph_of(*one.trace);
        out_.nodes += static_cast<std::int64_t>(one.trace->nodes.size());
        if (one.past) {
            set_up_past(static_cast<int>(c));
        } else {
            state.waits_for = state.graph->waits_for;
            state.left = static_cast<std::int64_t>(one.trace->nodes.size());
        }
        left_ += state.left;
        out_.classes[c].by_role_s.assign(one.groups.size() + one.peers.size(), 0);
        const std::vector<char>& meets = state.graph->meets;
        for (std::size_t role = 0; role < meets.size(); ++role)
            if (meets[role])
                groups_[one.groups[role]].members.emplace_back(static_cast<int>(c), static_cast<int>(role));
    }
    for (std::size_t c = 0; c < ranks_.size(); ++c) {
        if (job_.ranks[c].past) continue;
        const int nodes = static_cast<int>(ranks_[c].graph->waits_for.size());
        for (int i = 0; i < nodes; ++i)
            if (ranks_[c].graph->waits_for[i] == 0) issue(static_cast<int>(c), i);
    }
}

// All that a node waits for has ended.
void Executor::issue(int rank_class, int node) {
    const TraceNode& what = job_.ranks[rank_class].trace->nodes[node];
    switch (what.type) {
        case NodeType::kColl:
            return come_to_collective(rank_class, node);
        case NodeType::kSend:
        case NodeType::kRecv:
            return come_to_message(rank_class, node);
        default: {
            const int stream = what.on_cpu ? 1 : 0;
            ranks_[rank_class].streams[stream].ready.push(node);
            run_next(rank_class, stream);
        }
    }
}

void Executor::run_next(int rank_class, int number) {
    Stream& stream = ranks_[rank_class].streams[number];
    if (stream.busy || stream.ready.empty()) return;
    const int node = stream.ready.top();
    stream.ready.pop();
    if (number == 0) settle(rank_class);
    stream.busy = true;
    const double takes = job_.roofline.seconds(job_.ranks[rank_class].trace->nodes[node]);
    queue_.push({now_ + takes, sequence_++, rank_class, node, now_});
}

void Executor::compute_done(const Done& done) {
    if (done.node == kResumes) return resume(done.rank_class);
    const int number = job_.ranks[done.rank_class].trace->nodes[done.node].on_cpu ? 1 : 0;
    if (number == 0) settle(done.rank_class);
    ranks_[done.rank_class].streams[number].busy = false;
    record(done.rank_class, done.node, done.start_s);
    end_node(done.rank_class, done.node);
    run_next(done.rank_class, number);
}

void Executor::come_to_collective(int rank_class, int node) {
    const int role = job_.ranks[rank_class].trace->nodes[node].group;
    const int group = job_.ranks[rank_class].groups[role];
    GroupState& state = groups_[group];
    held_met_ = held_met_ || job_.groups[group].held;
    const int turn = ranks_[rank_class].graph->turn[node];
    Meeting& meeting = state.gathering[turn];
    meeting.ends.push_back({rank_class, node});
    const TraceNode& first = node_of(meeting.ends.front());
    const TraceNode& mine = node_of(meeting.ends.back());
    if (first.comm != mine.comm || first.bytes != mine.bytes)
        throw std::invalid_argument("group " + job_.groups[group].name + ": " + describe(meeting.ends.front()) +
                                    " and " + describe(meeting.ends.back()) + " meet with different types or sizes");
    if (meeting.ends.size() < state.members.size()) return;
    state.waiting.push_back(std::move(meeting));
    state.gathering.erase(turn);
    start_next(group);
}

void Executor::start_next(int group) {
    GroupState& state = groups_[group];
    if (state.busy || state.waiting.empty() || job_.groups[group].held) return;
    state.busy = true;
    Transfer transfer{std::move(state.waiting.front()), group};
    state.waiting.pop_front();
    const TraceNode& what = node_of(transfer.meeting.ends.front());
    const GroupClass& kind = job_.groups[group];
    PlanRequest request;
    request.group = group;
    request.comm = what.comm;
    request.bytes = kind.size < 2 ? 0 : what.bytes;
    start_transfer(request, kind.copies, std::move(transfer));
}

void Executor::come_to_message(int rank_class, int node) {
    const RankClass& own = job_.ranks[rank_class];
    const TraceNode& what = own.trace->nodes[node];
    const bool sends = what.type == NodeType::kSend;
    const int other = own.peers[what.peer];
    const MessageKey key{sends ? rank_class : other, sends ? other : rank_class, what.tag, what.bytes};
    Mailbox& box = mail_[key];
    (sends ? box.sends : box.receives).push_back({rank_class, node});
    if (box.sends.empty() || box.receives.empty()) return;
    const End source = box.sends.front();
    Transfer transfer{{{source, box.receives.front()}}, -1};
    box.sends.pop_front();
    box.receives.pop_front();
    if (box.sends.empty() && box.receives.empty()) mail_.erase(key);
    const RankClass& sender = job_.ranks[source.rank_class];
    PlanRequest request;
    request.src = sender.rank;
    request.dst = sender.peer_ranks[node_of(source).peer];
    request.bytes = what.bytes;
    start_transfer(request, sender.count, std::move(transfer));
}

void Executor::start_transfer(const PlanRequest& wanted, double copies, Transfer transfer) {
    ++out_.collectives;
    ++under_way_;
    transfer.meeting.start_s = now_;
    for (const End& end : transfer.meeting.ends) {
        settle(end.rank_class);
        ++ranks_[end.rank_class].moving;
    }
    PlanRequest request = wanted;
    request.epoch = epoch(now_);
    Plan* chosen = request.bytes > 0 ? &plan(request, copies) : nullptr;
    if (!chosen || chosen->movement->schedule.passes.empty()) {
        instant_.push_back(std::move(transfer));
        return;
    }
    double delay = cluster_.base_latency_s;
    const bool pays = request.epoch > 0 && !chosen->paid && chosen->answer.one_off_s > 0;
    if (pays && !paid_before(transfer.meeting, request)) delay += chosen->answer.one_off_s;
    chosen->paid = true;
    const int id = network_.begin(*chosen->movement, chosen->answer.tag, now_, delay);
    transfers_.resize(id + 1);
    transfers_[id] = std::move(transfer);
}

Executor::Plan& Executor::plan(const PlanRequest& request, double copies) {
    const auto [entry, fresh] = plans_.try_emplace(request);
    Plan& chosen = entry->second;
    if (!fresh) return chosen;
    chosen.answer = planner_(request);
    chosen.movement = std::make_unique<Movement>(cluster_, *chosen.answer.schedule, *chosen.answer.binding, copies);
    return chosen;
}

int Executor::epoch(double time_s) const {
    const auto at = std::upper_bound(job_.known_s.begin(), job_.known_s.end(), time_s);
    return static_cast<int>(at - job_.known_s.begin());
}

void Executor::end_transfer(Transfer& transfer) {
    --under_way_;
    const Meeting meeting = std::move(transfer.meeting);
    const int group = transfer.group;
    for (const End& end : meeting.ends) {
        settle(end.rank_class);
        --ranks_[end.rank_class].moving;
        const TraceNode& what = node_of(end);
        const std::size_t role =
            what.type == NodeType::kColl ? what.group : job_.ranks[end.rank_class].groups.size() + what.peer;
        out_.classes[end.rank_class].by_role_s[role] += now_ - meeting.start_s;
        record(end.rank_class, end.node, meeting.start_s);
    }
    if (group >= 0) groups_[group].busy = false;
    for (const End& end : meeting.ends) end_node(end.rank_class, end.node);
    if (group >= 0) start_next(group);
}

void Executor::end_node(int rank_class, int node) {
    RankState& state = ranks_[rank_class];
    --left_;
    if (--state.left == 0) {
        settle(rank_class);
        out_.classes[rank_class].end_s = now_;
    }
    const Graph& graph = *state.graph;
    for (std::uint32_t i = graph.offsets[node]; i < graph.offsets[node + 1]; ++i) {
        const std::uint32_t next = graph.dependents[i];
        if (--state.waits_for[next] == 0) issue(rank_class, static_cast<int>(next));
    }
}

// Books the time since the last change of what a class was doing.
void Executor::settle(int rank_class) {
    RankState& state = ranks_[rank_class];
    ClassTimes& times = out_.classes[rank_class];
    const double passed = now_ - state.since_s;
    state.since_s = now_;
    if (state.moving > 0) times.communication_s += passed;
    if (state.streams[0].busy)
        times.compute_s += passed;
    else if (state.moving > 0)
        times.exposed_s += passed;
    else
        times.waiting_s += passed;
}

void Executor::record(int rank_class, int node, double start_s) {
    if (job_.ranks[rank_class].recorded) out_.spans.push_back({rank_class, node, start_s, now_});
}

std::string Executor::describe(const End& end) const {
    const RankClass& own = job_.ranks[end.rank_class];
    const TraceNode& node = own.trace->nodes[end.node];
    const std::string name = node.name >= 0 ? " (" + own.trace->names[node.name] + ")" : "";
    return "rank " + std::to_string(own.rank) + " node " + std::to_string(node.id) + name;
}

// Who waits for whom when nothing moves any more.
std::string Executor::who_waits() const {
    constexpr int kMost = 4;
    std::vector<std::string> lines;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        for (const auto& [turn, meeting] : groups_[g].gathering) {
            std::string missing;
            for (const auto& [c, role] : groups_[g].members) {
                const bool there = std::any_of(
                    meeting.ends.begin(), meeting.ends.end(),
                    [&, one = c, as = role](const End& e) { return e.rank_class == one && node_of(e).group == as; });
                if (!there) missing += (missing.empty() ? "" : ", ") + std::to_string(job_.ranks[c].rank);
            }
            lines.push_back(describe(meeting.ends.front()) + " waits in group " + job_.groups[g].name + " for rank " +
                            missing);
        }
    }
    for (const auto& [key, box] : mail_) {
        const auto& [src, dst, tag, bytes] = key;
        for (const End& end : box.sends)
            lines.push_back(describe(end) + " waits for a receive of rank " + std::to_string(job_.ranks[dst].rank) +
                            " with tag " + std::to_string(tag) + " and " + std::to_string(bytes) + " bytes");
        for (const End& end : box.receives)
            lines.push_back(describe(end) + " waits for a send of rank " + std::to_string(job_.ranks[src].rank) +
                            " with tag " + std::to_string(tag) + " and " + std::to_string(bytes) + " bytes");
    }
    std::string text = lines.empty() ? "nodes are left whose dependencies never end" : "";
    for (std::size_t i = 0; i < lines.size() && i < kMost; ++i) text += (i ? "; " : "") + lines[i];
    if (lines.size() > kMost) text += "; and " + std::to_string(lines.size() - kMost) + " more";
    return text;
}

JobOutcome Executor::finish() {
    for (std::size_t c = 0; c < ranks_.size(); ++c)
        if (ranks_[c].left > 0) settle(static_cast<int>(c));
    if (network_.stopped()) {
        out_.network.status = network_.status();
        out_.network.reason = network_.reason();
        const bool earlier = before_events_ && before_events_->time_s < out_.quiet_points.front().time_s;
        if (earlier) out_.quiet_points.insert(out_.quiet_points.begin(), std::move(*before_events_));
    }
    network_.count_bytes(out_.network);
    out_.network.elapsed_s = now_;
    out_.network.event_time_s = network_.event_time_s();
    out_.network.log = network_.log();
    out_.network.steps = network_.steps();
    return std::move(out_);
}

}  // namespace simai
