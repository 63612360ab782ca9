#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/register.hpp"
#include "chunk/chunk_run.hpp"
#include "chunk/provenance.hpp"
#include "failover/failover.hpp"
#include "flow/flow_run.hpp"
#include "model/outcome.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simai {
namespace {

// A Python reaction: called with a Broken, answers with a Reaction. The engine waits for it.
React wrap(const nb::object& react) {
    if (react.is_none()) return {};
    return [react](const Broken& broken) {
        const nb::gil_scoped_acquire gil;
        return nb::cast<Reaction>(react(broken));
    };
}

Outcome py_run_flow(const Cluster& cluster, const Schedule& schedule, const Binding& binding,
                    const std::vector<NicEvent>& events, const nb::object& react, double max_time_s,
                    std::int64_t max_steps) {
    const React wrapped = wrap(react);
    const nb::gil_scoped_release release;
    return run_flow(cluster, schedule, binding, events, wrapped, {max_time_s, max_steps});
}

Outcome py_run_chunk(const Cluster& cluster, const Schedule& schedule, const Binding& binding,
                     const std::vector<NicEvent>& events, const nb::object& react, Provenance* provenance,
                     bool drop_duplicates, double max_time_s, std::int64_t max_steps) {
    const React wrapped = wrap(react);
    const nb::gil_scoped_release release;
    return run_chunk(cluster, schedule, binding, events, wrapped,
                     {{max_time_s, max_steps}, provenance, drop_duplicates});
}

// A copy of `values` as a numpy array of the given shape.
template <typename T>
nb::object to_numpy(const std::vector<T>& values, std::initializer_list<std::size_t> shape) {
    T* copy = new T[values.size()];
    std::copy(values.begin(), values.end(), copy);
    nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(copy, shape.size(), shape.begin(), owner));
}

void register_provenance(nb::module_& m) {
    const auto masks = [](const Provenance& p, const std::vector<std::uint64_t>& words) {
        const std::size_t intervals = p.cuts().size() - 1, per = static_cast<std::size_t>(p.words());
        return to_numpy(words, {words.size() / (intervals * per), intervals, per});
    };
    nb::class_<Provenance>(m, "Provenance")
        .def(nb::init<const Schedule&>(), "schedule"_a)
        .def("cuts", [](const Provenance& p) { return to_numpy(p.cuts(), {p.cuts().size()}); })
        .def("once", [masks](const Provenance& p) { return masks(p, p.once()); })
        .def("more", [masks](const Provenance& p) { return masks(p, p.more()); });
}

}  // namespace

void register_runs(nb::module_& m) {
    nb::enum_<Status>(m, "Status")
        .value("DONE", Status::kDone)
        .value("ABORTED", Status::kAborted)
        .value("PARTITIONED", Status::kPartitioned)
        .value("UNFINISHED", Status::kUnfinished);
    nb::class_<NicEvent>(m, "NicEvent")
        .def(
            "__init__",
            [](NicEvent* self, int nic, double fraction, double time_s, double at_bytes) {
                if (!(fraction >= 0)) throw std::invalid_argument("NicEvent: fraction must be >= 0");
                new (self) NicEvent{nic, fraction, time_s, at_bytes};
            },
            nb::kw_only(), "nic"_a, "fraction"_a, "time_s"_a = 0.0, "at_bytes"_a = -1.0)
        .def_ro("nic", &NicEvent::nic)
        .def_ro("fraction", &NicEvent::fraction)
        .def_ro("time_s", &NicEvent::time_s)
        .def_ro("at_bytes", &NicEvent::at_bytes);
    nb::class_<Broken>(m, "Broken")
        .def_ro("time_s", &Broken::time_s)
        .def_ro("nic", &Broken::nic)
        .def_ro("hops", &Broken::hops);
    nb::class_<Reaction>(m, "Reaction")
        .def(
            "__init__",
            [](Reaction* self, std::optional<Binding> rebind, std::optional<std::string> abort) {
                new (self) Reaction{std::move(rebind), std::move(abort)};
            },
            nb::kw_only(), "rebind"_a = nb::none(), "abort"_a = nb::none());
    nb::class_<LogEntry>(m, "LogEntry")
        .def_ro("time_s", &LogEntry::time_s)
        .def_ro("what", &LogEntry::what)
        .def_ro("nic", &LogEntry::nic)
        .def_ro("value", &LogEntry::value);
    nb::class_<Outcome>(m, "Outcome")
        .def_ro("status", &Outcome::status)
        .def_ro("reason", &Outcome::reason)
        .def_ro("elapsed_s", &Outcome::elapsed_s)
        .def_ro("out_payload", &Outcome::out_payload)
        .def_ro("in_payload", &Outcome::in_payload)
        .def_ro("out_wire", &Outcome::out_wire)
        .def_ro("in_wire", &Outcome::in_wire)
        .def_ro("pass_start_s", &Outcome::pass_start_s)
        .def_ro("pass_end_s", &Outcome::pass_end_s)
        .def_ro("event_time_s", &Outcome::event_time_s)
        .def_ro("log", &Outcome::log)
        .def_ro("steps", &Outcome::steps);
    register_provenance(m);
    m.def("run_chunk", &py_run_chunk, "cluster"_a, "schedule"_a, "binding"_a, "events"_a, "react"_a = nb::none(),
          nb::kw_only(), "provenance"_a.none() = nb::none(), "drop_duplicates"_a = true, "max_time_s"_a = 1e6,
          "max_steps"_a = 2'000'000'000);
    m.def(
        "migrate",
        [](const Cluster& cluster, const Binding& binding, const std::vector<bool>& known_down) {
            return migrate(cluster, binding, known_down);
        },
        "cluster"_a, "binding"_a, "known_down"_a);
    m.def("run_flow", &py_run_flow, "cluster"_a, "schedule"_a, "binding"_a, "events"_a, "react"_a = nb::none(),
          nb::kw_only(), "max_time_s"_a = 1e6, "max_steps"_a = 2'000'000'000);
}

}  // namespace simai
