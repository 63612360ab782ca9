#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/arrays.hpp"
#include "bindings/register.hpp"
#include "training/executor.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simai {
namespace {

std::vector<int> ints(const Ints& column) { return {column.data(), column.data() + column.size()}; }

std::vector<double> doubles(const Doubles& column) { return {column.data(), column.data() + column.size()}; }

void check_roles(const Job& job) {
    for (const RankClass& one : job.ranks) {
        if (one.groups.size() < one.trace->groups.size() || one.peers.size() < one.trace->peers.size() ||
            one.peers.size() != one.peer_ranks.size())
            throw std::invalid_argument("rank " + std::to_string(one.rank) + ": fewer groups or peers than its trace");
        for (int group : one.groups)
            if (group >= static_cast<int>(job.groups.size())) throw std::invalid_argument("no such group class");
        for (int peer : one.peers)
            if (peer >= static_cast<int>(job.ranks.size())) throw std::invalid_argument("no such rank class");
    }
}

// The planner answers with (schedule, binding, one-off seconds, tag); what it returns is kept until the run has ended.
JobOutcome run_job(const Cluster& cluster, const std::vector<RankClass>& ranks, const std::vector<GroupClass>& groups,
                   const Ints& fold_representative, const Doubles& fold_count, const std::vector<double>& known_s,
                   const std::vector<NicEvent>& events, const nb::callable& planner, const nb::object& react,
                   const std::optional<Roofline>& roofline, const std::optional<std::vector<int>>& quiet_nics,
                   double max_time_s, std::int64_t max_steps) {
    Job job{ranks, groups, {ints(fold_representative), doubles(fold_count)}, known_s, roofline.value_or(Roofline{})};
    job.quiet_points = quiet_nics.has_value();
    job.quiet_nics = quiet_nics.value_or(std::vector<int>{});
    for (int nic : job.quiet_nics)
        if (nic < 0 || nic >= static_cast<int>(cluster.nics.size())) throw std::invalid_argument("no such NIC");
    check_roles(job);
    same_length(fold_representative.size(), {fold_count.size()}, "fold");
    std::vector<nb::object> kept;
    const Planner ask = [&](const PlanRequest& request) {
        const nb::tuple answer = nb::cast<nb::tuple>(planner(request));
        kept.push_back(answer);
        return PlanAnswer{nb::cast<const Schedule*>(answer[0]), nb::cast<const Binding*>(answer[1]),
                          nb::cast<double>(answer[2]), nb::cast<int>(answer[3])};
    };
    JobReact answer_break;
    if (!react.is_none())
        answer_break = [&](const Broken& broken, int tag) { return nb::cast<Reaction>(react(broken, tag)); };
    return Executor(cluster, job, events, ask, answer_break, {max_time_s, max_steps}).run();
}

nb::object table(std::vector<double> values, std::vector<std::size_t> shape) {
    auto* kept = new std::vector<double>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, double>(kept->data(), shape.size(), shape.data(), owner));
}

void append(std::vector<double>& row, const ClassTimes& t) {
    row.insert(row.end(), {t.end_s, t.compute_s, t.exposed_s, t.waiting_s, t.communication_s});
    row.insert(row.end(), t.by_role_s.begin(), t.by_role_s.end());
}

// A row of each class: its end, its parts, its roles.
nb::object class_table(const JobOutcome& out) {
    std::vector<double> rows;
    for (const ClassTimes& t : out.classes) append(rows, t);
    const std::size_t n = out.classes.size();
    return table(std::move(rows), {n, n == 0 ? 0 : 5 + out.classes.front().by_role_s.size()});
}

// Three tables of the quiet points: their times; rows of the classes; of each NIC its four counts.
nb::tuple quiet_points(const JobOutcome& out) {
    const std::size_t n = out.quiet_points.size();
    const std::size_t roles = out.classes.empty() ? 0 : out.classes.front().by_role_s.size();
    const std::size_t nics = n == 0 ? 0 : out.quiet_points.front().nics.size();
    std::vector<double> times, classes, counts;
    for (const QuietPoint& point : out.quiet_points) {
        times.push_back(point.time_s);
        for (const ClassTimes& t : point.classes) append(classes, t);
        for (const NicCount& nic : point.nics)
            counts.insert(counts.end(), {nic.out_wire, nic.in_wire, nic.out_payload, nic.in_payload});
    }
    return nb::make_tuple(table(std::move(times), {n}), table(std::move(classes), {n, out.classes.size(), 5 + roles}),
                          table(std::move(counts), {n, nics, 4}));
}

nb::object span_table(const JobOutcome& out) {
    auto* rows = new double[out.spans.size() * 4];
    for (std::size_t i = 0; i < out.spans.size(); ++i) {
        rows[4 * i] = out.spans[i].rank_class;
        rows[4 * i + 1] = out.spans[i].node;
        rows[4 * i + 2] = out.spans[i].start_s;
        rows[4 * i + 3] = out.spans[i].end_s;
    }
    nb::capsule owner(rows, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, double>(rows, {out.spans.size(), 4}, owner));
}

}  // namespace

void register_training(nb::module_& m) {
    nb::class_<Roofline>(m, "Roofline")
        .def(
            "__init__",
            [](Roofline* self, double flops_per_s, double bytes_per_s, double floor_s) {
                if (!(flops_per_s > 0) || !(bytes_per_s > 0) || !(floor_s >= 0))
                    throw std::invalid_argument("Roofline: rates must be above 0, and the floor not negative");
                new (self) Roofline{flops_per_s, bytes_per_s, floor_s};
            },
            nb::kw_only(), "flops_per_s"_a, "bytes_per_s"_a, "floor_s"_a = 0.0);
    nb::class_<Past>(m, "Past")
        .def(
            "__init__",
            [](Past* self, const Column<bool>& ended, const Ints& nodes, const Doubles& start_s, const Doubles& end_s) {
                same_length(nodes.size(), {start_s.size(), end_s.size()}, "Past");
                for (std::size_t k = 0; k < nodes.size(); ++k)
                    if (nodes(k) < 0 || nodes(k) >= static_cast<std::int64_t>(ended.size()))
                        throw std::invalid_argument("Past: no such node");
                new (self)
                    Past{{ended.data(), ended.data() + ended.size()}, ints(nodes), doubles(start_s), doubles(end_s)};
            },
            nb::kw_only(), "ended"_a, "nodes"_a, "start_s"_a, "end_s"_a)
        .def_prop_ro("bytes", [](const Past& self) { return self.ended.size() + 20 * self.nodes.size(); });
    nb::class_<RankClass>(m, "RankClass")
        .def(
            "__init__",
            [](RankClass* self, const Trace& trace, int rank, double count, const Ints& groups, const Ints& peers,
               const Ints& peer_ranks, bool recorded, std::shared_ptr<Past> past, double resume_s) {
                if (past && !(resume_s >= 0)) throw std::invalid_argument("RankClass: resume_s must not be negative");
                new (self) RankClass{&trace,           rank,     count,           ints(groups), ints(peers),
                                     ints(peer_ranks), recorded, std::move(past), resume_s};
            },
            nb::kw_only(), "trace"_a, "rank"_a, "count"_a, "groups"_a, "peers"_a, "peer_ranks"_a, "recorded"_a = false,
            "past"_a = nb::none(), "resume_s"_a = 0.0, nb::keep_alive<1, 2>());
    nb::class_<GroupClass>(m, "GroupClass")
        .def(
            "__init__",
            [](GroupClass* self, std::string name, int size, double copies, bool held) {
                new (self) GroupClass{std::move(name), size, copies, held};
            },
            nb::kw_only(), "name"_a, "size"_a, "copies"_a, "held"_a = false);
    nb::class_<PlanRequest>(m, "PlanRequest")
        .def_ro("group", &PlanRequest::group)
        .def_ro("src", &PlanRequest::src)
        .def_ro("dst", &PlanRequest::dst)
        .def_prop_ro("comm_type", [](const PlanRequest& r) { return static_cast<int>(r.comm); })
        .def_ro("bytes", &PlanRequest::bytes)
        .def_ro("epoch", &PlanRequest::epoch);
    nb::class_<JobOutcome>(m, "JobOutcome")
        .def_ro("network", &JobOutcome::network)
        .def("classes", &class_table)
        .def("spans", &span_table)
        .def("quiet_points", &quiet_points)
        .def_ro("nodes", &JobOutcome::nodes)
        .def_ro("collectives", &JobOutcome::collectives);
    m.def("run_job", &run_job, "cluster"_a, nb::kw_only(), "ranks"_a, "groups"_a, "fold_representative"_a,
          "fold_count"_a, "known_s"_a, "events"_a, "planner"_a, "react"_a = nb::none(), "roofline"_a = nb::none(),
          "quiet_nics"_a = nb::none(), "max_time_s"_a = 1e6, "max_steps"_a = 2'000'000'000);
}

}  // namespace simai
