#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <map>

#include "bindings/arrays.hpp"
#include "bindings/register.hpp"
#include "flow/movement.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simai {
namespace {

template <typename T>
nb::object column(const std::vector<T>& values) {
    T* copy = new T[values.size()];
    std::copy(values.begin(), values.end(), copy);
    nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(copy, {values.size()}, owner));
}

// For every pass and port that it uses: the pass, the port, and the bytes on it. Ordered.
nb::tuple port_loads(const Cluster& cluster, const Schedule& schedule, const Binding& binding) {
    const Movement movement(cluster, schedule, binding);
    std::vector<std::int64_t> pass_of, port_of;
    std::vector<double> bytes_on;
    for (std::size_t pass = 0; pass < schedule.passes.size(); ++pass) {
        std::map<int, double> bytes;
        const std::vector<int>& route = movement.hops.of_pass(static_cast<int>(pass));
        for (std::size_t pos = 0; pos < route.size(); ++pos) {
            const Hop& hop = movement.hops.at(route[pos]);
            const auto moved = static_cast<double>(movement.hop_bytes[pass][pos]);
            for (const Lane& lane : hop.lanes) {
                const LanePath path = movement.hops.path(hop, lane);
                for (int i = 0; i < path.count && moved > 0; ++i)
                    bytes[path.use[i].port] += moved * lane.share * path.use[i].bytes_per_byte;
            }
        }
        for (const auto& [port, count] : bytes) {
            pass_of.push_back(static_cast<std::int64_t>(pass));
            port_of.push_back(port);
            bytes_on.push_back(count);
        }
    }
    return nb::make_tuple(column(pass_of), column(port_of), column(bytes_on));
}

}  // namespace

void register_port_loads(nb::module_& m) { m.def("port_loads", &port_loads, "cluster"_a, "schedule"_a, "binding"_a); }

}  // namespace simai
