#include "model/cluster.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.hpp"
#include "bindings/register.hpp"

namespace nb = nanobind;

namespace simai {

void register_cluster(nb::module_& m) {
    nb::class_<Nic>(m, "Nic").def(
        "__init__",
        [](Nic* self, std::string name, int server, int rail, int numa, double rate, double line_rate, double burst,
           double mtu, double header, std::vector<int> backups, int leaf) {
            new (self)
                Nic{std::move(name), server, rail, numa, rate, line_rate, burst, mtu, header, std::move(backups), leaf};
        },
        nb::kw_only(), nb::arg("name"), nb::arg("server"), nb::arg("rail"), nb::arg("numa"), nb::arg("rate"),
        nb::arg("line_rate"), nb::arg("burst"), nb::arg("mtu"), nb::arg("header"), nb::arg("backups"),
        nb::arg("leaf") = -1);
    nb::class_<Cluster>(m, "Cluster")
        .def(
            "__init__",
            [](Cluster* self, std::vector<Nic> nics, const Ints& rank_server, const Ints& rank_numa,
               const Doubles& rank_link_rate, const Doubles& rank_link_latency_s, std::vector<double> bridge_rate,
               bool rails_connected, int backups_per_nic, double base_latency_s, double net_latency_s,
               double resume_delay_s, int window_chunks, std::vector<double> uplink_rate) {
                same_length(rank_server.size(), {rank_numa.size(), rank_link_rate.size(), rank_link_latency_s.size()},
                            "ranks");
                std::vector<Rank> ranks(rank_server.size());
                for (std::size_t r = 0; r < ranks.size(); ++r)
                    ranks[r] = {static_cast<int>(rank_server(r)), static_cast<int>(rank_numa(r)), rank_link_rate(r),
                                rank_link_latency_s(r)};
                Cluster cluster{std::move(nics), std::move(ranks),      std::move(bridge_rate), rails_connected,
                                backups_per_nic, base_latency_s,        net_latency_s,          resume_delay_s,
                                window_chunks,   std::move(uplink_rate)};
                cluster.validate();
                new (self) Cluster(std::move(cluster));
            },
            nb::kw_only(), nb::arg("nics"), nb::arg("rank_server"), nb::arg("rank_numa"), nb::arg("rank_link_rate"),
            nb::arg("rank_link_latency_s"), nb::arg("bridge_rate"), nb::arg("rails_connected"),
            nb::arg("backups_per_nic"), nb::arg("base_latency_s"), nb::arg("net_latency_s"), nb::arg("resume_delay_s"),
            nb::arg("window_chunks"), nb::arg("uplink_rate") = std::vector<double>{});
}

}  // namespace simai
