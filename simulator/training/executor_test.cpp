#include "training/executor.hpp"

#include <doctest/doctest.h>

#include "testing/small_cluster.hpp"

namespace simai {
namespace {

using doctest::Approx;
using testing::one_hop;
using testing::small_cluster;

// Nodes are added in the order of their numbers; each names the ones it waits for.
struct Writer {
    Trace trace;
    int add(TraceNode node, std::vector<std::uint32_t> deps) {
        node.id = static_cast<std::int64_t>(trace.nodes.size());
        trace.nodes.push_back(node);
        trace.deps.insert(trace.deps.end(), deps.begin(), deps.end());
        trace.dep_offsets.push_back(static_cast<std::uint32_t>(trace.deps.size()));
        return static_cast<int>(node.id);
    }
    int compute(double seconds, std::vector<std::uint32_t> deps = {}) {
        TraceNode node;
        node.type = NodeType::kComp;
        node.duration_s = seconds;
        return add(node, std::move(deps));
    }
    int all_reduce(std::int64_t bytes, std::vector<std::uint32_t> deps = {}, int group = 0) {
        TraceNode node;
        node.type = NodeType::kColl;
        node.comm = CommType::kAllReduce;
        node.bytes = bytes;
        node.group = group;
        if (static_cast<int>(trace.groups.size()) <= group) trace.groups.resize(group + 1, "1");
        return add(node, std::move(deps));
    }
    int message(NodeType type, std::int64_t bytes, std::vector<std::uint32_t> deps = {}) {
        TraceNode node;
        node.type = type;
        node.bytes = bytes;
        node.peer = 0;
        return add(node, std::move(deps));
    }
};

// Two servers of one rank, a NIC of 100 bytes/s (and a spare one) each; every collective is `bytes` from rank 0 to 1.
struct Bench {
    Cluster cluster = small_cluster(2, 2, 100);
    Writer ranks[2];
    Schedule schedule;
    Binding binding{{0, 0, 1, 0, 2, 1}};
    std::vector<NicEvent> events;
    int plans = 0;
    double one_off_s = 0;
    bool held = false;
    std::shared_ptr<const Past> pasts[2];
    double resume_s = 0;

    JobOutcome run(std::vector<double> known_s = {}) {
        Job job;
        for (int r = 0; r < 2; ++r) {
            RankClass one;
            one.trace = &ranks[r].trace;
            one.rank = r;
            one.groups = {0};
            one.peers = {1 - r};
            one.peer_ranks = {1 - r};
            one.recorded = true;
            one.past = pasts[r];
            one.resume_s = resume_s;
            job.ranks.push_back(one);
        }
        job.groups = {{"1", 2, 1, held}};
        job.quiet_points = true;
        job.quiet_nics = {0};
        job.known_s = std::move(known_s);
        const Planner planner = [this](const PlanRequest& request) {
            ++plans;
            schedule = one_hop(request.bytes, 100);
            return PlanAnswer{&schedule, &binding, one_off_s, 0};
        };
        return Executor(cluster, job, events, planner, {}, {}).run();
    }

    // Goes on from what an earlier run did; `first_s`: the earliest time at which it may.
    void go_on(const JobOutcome& earlier, double at_s, double first_s = 0) {
        resume_s = at_s;
        for (int r = 0; r < 2; ++r) {
            Past past;
            past.ended.assign(ranks[r].trace.nodes.size(), 0);
            for (const Span& span : earlier.spans) {
                if (span.rank_class != r) continue;
                past.ended[span.node] = span.end_s <= first_s;
                past.nodes.push_back(span.node);
                past.start_s.push_back(span.start_s);
                past.end_s.push_back(span.end_s);
            }
            pasts[r] = std::make_shared<const Past>(past);
        }
    }
};

TEST_CASE("executor: compute, an AllReduce that it hides, and one that it does not") {
    Bench bench;
    for (Writer& rank : bench.ranks) {
        const auto first = rank.compute(1);
        rank.all_reduce(1000, {0});  // 10 s, beside 4 s of compute
        rank.compute(4, {static_cast<std::uint32_t>(first)});
        rank.compute(1, {1, 2});
    }
    const JobOutcome out = bench.run();
    CHECK(out.network.status == Status::kDone);
    CHECK(out.network.elapsed_s == Approx(12));
    CHECK(out.classes[0].compute_s == Approx(6));
    CHECK(out.classes[0].communication_s == Approx(10));
    CHECK(out.classes[0].exposed_s == Approx(6));
    CHECK(out.classes[0].waiting_s == Approx(0));
    CHECK(out.classes[0].by_role_s[0] == Approx(10));
    CHECK(out.spans.size() == 8);
}

TEST_CASE("executor: who comes early waits; waiting is not exposed communication") {
    Bench bench;
    bench.ranks[0].compute(1);
    bench.ranks[1].compute(5);
    for (Writer& rank : bench.ranks) rank.all_reduce(1000, {0});
    const JobOutcome out = bench.run();
    CHECK(out.network.elapsed_s == Approx(15));
    CHECK(out.classes[0].waiting_s == Approx(4));
    CHECK(out.classes[0].exposed_s == Approx(10));
    CHECK(out.classes[1].waiting_s == Approx(0));
}

TEST_CASE("executor: a communicator runs one collective at a time, in the order in which all had come") {
    Bench bench;
    for (Writer& rank : bench.ranks) {
        rank.all_reduce(1000);
        rank.all_reduce(500);
    }
    const JobOutcome out = bench.run();
    CHECK(out.network.elapsed_s == Approx(15));
}

TEST_CASE("executor: a message takes both ends") {
    Bench bench;
    bench.ranks[0].message(NodeType::kSend, 1000);
    bench.ranks[1].compute(3);
    bench.ranks[1].message(NodeType::kRecv, 1000, {0});
    bench.ranks[1].compute(1, {1});
    const JobOutcome out = bench.run();
    CHECK(out.network.elapsed_s == Approx(14));
    CHECK(out.classes[0].waiting_s == Approx(3));
    CHECK(out.classes[1].by_role_s[1] == Approx(10));
}

TEST_CASE("executor: a cut in mid-transfer goes on over the backup once it is known") {
    Bench bench;
    bench.cluster.resume_delay_s = 2;
    bench.events = {{0, 0, 5.0005, -1}};
    for (Writer& rank : bench.ranks) {
        rank.compute(1);
        rank.all_reduce(1000, {0});
        rank.all_reduce(500, {1});  // its plan is of before the cut, and does not try the dead NIC
    }
    const JobOutcome out = bench.run();
    CHECK(out.network.status == Status::kDone);
    CHECK(out.network.elapsed_s == Approx(1 + 10 + 2 + 5).epsilon(1e-3));
    CHECK(bench.plans == 2);
    CHECK(out.network.log.back().what == "migrated");
}

TEST_CASE("executor: plans are asked for again when more is known") {
    Bench bench;
    for (Writer& rank : bench.ranks) {
        rank.all_reduce(1000);
        rank.all_reduce(1000);
    }
    bench.run({4});
    CHECK(bench.plans == 2);
    bench.plans = 0;
    bench.run();
    CHECK(bench.plans == 1);
}

TEST_CASE("executor: nothing moves any more: who waits for whom") {
    Bench bench;
    bench.ranks[0].all_reduce(1000);
    bench.ranks[1].compute(1);
    bench.ranks[1].message(NodeType::kRecv, 7, {0});
    bench.ranks[1].all_reduce(1000, {1});
    const JobOutcome out = bench.run();
    CHECK(out.network.status == Status::kUnfinished);
    CHECK(out.network.reason ==
          "rank 0 node 0 waits in group 1 for rank 1; rank 1 node 1 waits for a send of rank 0 with tag 0 and 7 bytes");
}

TEST_CASE("executor: a collective without a byte releases those who wait for it") {
    Bench bench;
    for (Writer& rank : bench.ranks) {
        rank.all_reduce(0);
        rank.compute(2, {0});
    }
    CHECK(bench.run().network.elapsed_s == Approx(2));
}

TEST_CASE("executor: members that disagree are an error") {
    Bench bench;
    bench.ranks[0].all_reduce(1000);
    bench.ranks[1].all_reduce(999);
    CHECK_THROWS_WITH(bench.run(), "group 1: rank 0 node 0 and rank 1 node 0 meet with different types or sizes");
}

TEST_CASE("executor: folded ports carry what their class carries, each its part") {
    Bench bench;  // two equal movements in other places, each over one of two equal ports: as one over one
    Job job;
    for (int r = 0; r < 2; ++r) {
        bench.ranks[r].all_reduce(1000);
        RankClass one;
        one.trace = &bench.ranks[r].trace;
        one.rank = r;
        one.groups = {0};
        job.ranks.push_back(one);
    }
    const int ports = Ports(bench.cluster).count();
    for (int p = 0; p < ports; ++p) job.fold.representative.push_back(p);
    job.fold.count.assign(ports, 2);
    for (const auto& [copies, seconds] : {std::pair{2.0, 10.0}, {4.0, 20.0}}) {
        job.groups = {{"1", 2, copies}};
        const Planner planner = [&](const PlanRequest& request) {
            bench.schedule = one_hop(request.bytes, 100);
            return PlanAnswer{&bench.schedule, &bench.binding, 0, 0};
        };
        CHECK(Executor(bench.cluster, job, {}, planner, {}, {}).run().network.elapsed_s == Approx(seconds));
    }
}

// A second of compute, 10 s of AllReduce beside 4 of compute, 5 s of AllReduce, a second of compute: 18 s.
void two_all_reduces(Bench& bench) {
    for (Writer& rank : bench.ranks) {
        rank.compute(1);
        rank.all_reduce(1000, {0});
        rank.compute(4, {0});
        rank.compute(1, {2, 1});
        rank.all_reduce(500, {3});
        rank.compute(1, {4});
    }
}

TEST_CASE("executor: at a quiet time a run goes on as if it had never stopped") {
    for (const double at : {0.0, 0.5, 11.5, 12.0, 17.5, 18.0}) {
        Bench whole, rest;
        two_all_reduces(whole);
        two_all_reduces(rest);
        const JobOutcome earlier = whole.run();
        CHECK(earlier.network.elapsed_s == Approx(18));
        rest.go_on(earlier, at, at / 2);
        const JobOutcome out = rest.run();
        CHECK(out.network.status == Status::kDone);
        CHECK(out.network.elapsed_s == Approx(at < 18 ? 18 : 0));
    }
}

TEST_CASE("executor: what lies behind a quiet point and what follows are the whole") {
    Bench whole, rest;
    two_all_reduces(whole);
    two_all_reduces(rest);
    const JobOutcome earlier = whole.run();
    REQUIRE(!earlier.quiet_points.empty());
    const QuietPoint& point = earlier.quiet_points.back();
    CHECK(point.time_s == Approx(17.5));  // the last: in the middle of the last node
    rest.go_on(earlier, point.time_s);
    const JobOutcome out = rest.run();
    CHECK(point.classes[0].compute_s + out.classes[0].compute_s == Approx(earlier.classes[0].compute_s));
    CHECK(point.classes[0].exposed_s + out.classes[0].exposed_s == Approx(earlier.classes[0].exposed_s));
    CHECK(point.nics[0].out_wire == Approx(earlier.network.out_wire[0]));
    CHECK(out.network.out_wire[0] == 0);
}

TEST_CASE("executor: nobody resumes while something is under way") {
    Bench whole, rest;
    two_all_reduces(whole);
    two_all_reduces(rest);
    rest.go_on(whole.run(), 6);
    CHECK_THROWS_WITH(rest.run(), "rank 0 node 1 is under way where its rank resumes");
    rest.pasts[0] = std::make_shared<const Past>();
    CHECK_THROWS_WITH(rest.run(), "rank 0: its past is not that of its trace");
}

TEST_CASE("executor: who came early still waits, and is first in turn") {
    const auto fill = [](Bench& bench) {  // rank 0 waits with a message and an AllReduce for rank 1, which computes
        bench.ranks[0].message(NodeType::kSend, 1000);
        bench.ranks[0].all_reduce(500);
        bench.ranks[1].compute(3);
        bench.ranks[1].message(NodeType::kRecv, 1000, {0});
        bench.ranks[1].all_reduce(500, {0});
    };
    Bench whole, rest;
    fill(whole);
    fill(rest);
    const JobOutcome earlier = whole.run();
    CHECK(earlier.network.elapsed_s == Approx(18));
    rest.go_on(earlier, 2);
    CHECK(rest.run().network.elapsed_s == Approx(18));
}

TEST_CASE("executor: a plan that was paid for before is not paid for again") {
    Bench whole, rest;
    for (Bench* bench : {&whole, &rest}) {
        bench->one_off_s = 3;
        for (Writer& rank : bench->ranks) {
            rank.compute(5);
            rank.all_reduce(1000, {0});
            rank.compute(1, {1});
            rank.all_reduce(1000, {2});
        }
    }
    const JobOutcome earlier = whole.run({4});
    CHECK(earlier.network.elapsed_s == Approx(5 + 13 + 1 + 10));
    rest.go_on(earlier, 18.5);
    CHECK(rest.run({4}).network.elapsed_s == Approx(29));
    rest.go_on(earlier, 2);
    CHECK(rest.run({4}).network.elapsed_s == Approx(29));
}

TEST_CASE("executor: a held communicator never starts, and quiet points before it and after it are kept") {
    Bench bench;
    two_all_reduces(bench);
    bench.held = true;
    const JobOutcome out = bench.run();
    CHECK(out.network.status == Status::kUnfinished);
    CHECK(out.network.elapsed_s == Approx(5));  // the compute beside the first AllReduce
    REQUIRE(out.quiet_points.size() == 3);
    CHECK(out.quiet_points[0].time_s == Approx(0.5));
    CHECK(out.quiet_points[1].time_s == Approx(3));
    CHECK(out.quiet_points[2].time_s == Approx(5));
}

TEST_CASE("executor: of a run that comes to nothing the quiet point before the failure is kept, too") {
    Bench bench;
    bench.cluster.resume_delay_s = 0.5;
    bench.events = {{0, 0, 12, -1}, {1, 0, 12, -1}};  // both NICs of server 0
    two_all_reduces(bench);
    bench.held = false;
    const JobOutcome out = bench.run();
    CHECK(out.network.status == Status::kPartitioned);
    REQUIRE(out.quiet_points.size() == 1);
    CHECK(out.quiet_points[0].time_s == Approx(11.5));
}

}  // namespace
}  // namespace simai
