#include "model/schedule.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/register.hpp"

namespace nb = nanobind;

namespace simai {
namespace {

int narrow(std::int64_t value) { return static_cast<int>(value); }

Schedule make_schedule(int n_ranks, std::int64_t bytes, double wire_factor, const Ints& route_offsets,
                       const Ints& route_ranks, const Ints& channel, const Ints& route, const Ints& cyclic,
                       const Ints& reduce_hops, const Ints& copy_hops, const Ints& chunks, const Doubles& weight,
                       const Ints& section_offsets, const Ints& lo, const Ints& hi, const Ints& start,
                       const Ints& after_offsets, const Ints& after) {
    const std::size_t n = channel.size();
    same_length(n, {route.size(), cyclic.size(), reduce_hops.size(), copy_hops.size(), chunks.size(), weight.size()},
                "passes");
    same_length(lo.size(), {hi.size(), start.size()}, "sections");
    if (route_offsets.size() == 0) throw std::invalid_argument("routes: offsets do not match");
    check_offsets(route_offsets, route_offsets.size() - 1, route_ranks.size(), "routes");
    check_offsets(section_offsets, n, lo.size(), "sections");
    check_offsets(after_offsets, n, after.size(), "after");
    Schedule s{n_ranks, bytes, wire_factor, {}, {}};
    for (std::size_t i = 0; i + 1 < route_offsets.size(); ++i)
        s.routes.push_back(row_of(route_offsets, route_ranks, i));
    s.passes.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        if (channel(i) < 0) throw std::invalid_argument("passes: a channel must be >= 0");
        Pass& p = s.passes[i];
        p = {narrow(channel(i)),
             narrow(route(i)),
             cyclic(i) != 0,
             narrow(reduce_hops(i)),
             narrow(copy_hops(i)),
             narrow(chunks(i)),
             weight(i),
             {},
             row_of(after_offsets, after, i)};
        for (auto k = static_cast<std::size_t>(section_offsets(i));
             k < static_cast<std::size_t>(section_offsets(i + 1)); ++k)
            p.sections.push_back({lo(k), hi(k), narrow(start(k))});
    }
    s.validate();
    return s;
}

Binding make_binding(const Ints& channel, const Ints& src, const Ints& dst, const Ints& src_nic, const Ints& dst_nic,
                     const Doubles& share) {
    same_length(channel.size(), {src.size(), dst.size(), src_nic.size(), dst_nic.size(), share.size()}, "binding");
    Binding rows(channel.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = {narrow(channel(i)), narrow(src(i)),     narrow(dst(i)),
                   narrow(src_nic(i)), narrow(dst_nic(i)), share(i)};
    return rows;
}

}  // namespace

void register_schedule(nb::module_& m) {
    nb::class_<Schedule>(m, "Schedule")
        .def(
            "__init__",
            [](Schedule* self, int n_ranks, std::int64_t bytes, double wire_factor, const Ints& route_offsets,
               const Ints& route_ranks, const Ints& channel, const Ints& route, const Ints& cyclic,
               const Ints& reduce_hops, const Ints& copy_hops, const Ints& chunks, const Doubles& weight,
               const Ints& section_offsets, const Ints& lo, const Ints& hi, const Ints& start,
               const Ints& after_offsets, const Ints& after) {
                new (self) Schedule(make_schedule(n_ranks, bytes, wire_factor, route_offsets, route_ranks, channel,
                                                  route, cyclic, reduce_hops, copy_hops, chunks, weight,
                                                  section_offsets, lo, hi, start, after_offsets, after));
            },
            nb::kw_only(), nb::arg("n_ranks"), nb::arg("bytes"), nb::arg("wire_factor"), nb::arg("route_offsets"),
            nb::arg("route_ranks"), nb::arg("channel"), nb::arg("route"), nb::arg("cyclic"), nb::arg("reduce_hops"),
            nb::arg("copy_hops"), nb::arg("chunks"), nb::arg("weight"), nb::arg("section_offsets"), nb::arg("lo"),
            nb::arg("hi"), nb::arg("start"), nb::arg("after_offsets"), nb::arg("after"));
    nb::class_<Binding>(m, "Binding")
        .def(
            "__init__",
            [](Binding* self, const Ints& channel, const Ints& src, const Ints& dst, const Ints& src_nic,
               const Ints& dst_nic,
               const Doubles& share) { new (self) Binding(make_binding(channel, src, dst, src_nic, dst_nic, share)); },
            nb::kw_only(), nb::arg("channel"), nb::arg("src"), nb::arg("dst"), nb::arg("src_nic"), nb::arg("dst_nic"),
            nb::arg("share"))
        .def("rows",
             [](const Binding& rows) {
                 std::vector<std::tuple<int, int, int, int, int, double>> out;
                 for (const BindingRow& r : rows)
                     out.emplace_back(r.channel, r.src, r.dst, r.src_nic, r.dst_nic, r.share);
                 return out;
             })
        .def("__len__", [](const Binding& rows) { return rows.size(); });
}

}  // namespace simai
