#include "flow/solver.hpp"

#include <nanobind/stl/vector.h>

#include <cmath>

#include "bindings/arrays.hpp"
#include "bindings/register.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simai {
namespace {

std::vector<double> max_min(const std::vector<double>& capacity, const Ints& offsets, const Ints& ports,
                            const Doubles& amounts, const Doubles& weights, const Doubles& caps) {
    same_length(ports.size(), {amounts.size()}, "loads");
    same_length(weights.size(), {caps.size()}, "flows");
    check_offsets(offsets, weights.size(), ports.size(), "loads");
    std::vector<std::vector<Load>> loads(weights.size());
    std::vector<SolverFlow> flows(weights.size());
    for (std::size_t f = 0; f < flows.size(); ++f) {
        for (auto k = static_cast<std::size_t>(offsets(f)); k < static_cast<std::size_t>(offsets(f + 1)); ++k) {
            if (ports(k) < 0 || ports(k) >= static_cast<std::int64_t>(capacity.size()) || !(amounts(k) > 0))
                throw std::invalid_argument("loads: no such port, or an amount that is not > 0");
            loads[f].push_back({static_cast<int>(ports(k)), amounts(k)});
        }
        if (!(weights(f) > 0) || !std::isfinite(weights(f)) || !(caps(f) >= 0))
            throw std::invalid_argument("flows: weight > 0 and cap >= 0 wanted");
        flows[f] = {weights(f), caps(f), &loads[f]};
    }
    MaxMinSolver solver(static_cast<int>(capacity.size()));
    std::vector<double> rates;
    solver.solve(flows, capacity, rates);
    return rates;
}

}  // namespace

void register_solver(nb::module_& m) {
    m.def("max_min", &max_min, "capacity"_a, nb::kw_only(), "offsets"_a, "ports"_a, "amounts"_a, "weights"_a, "caps"_a,
          "Rates of flows by weighted max-min fairness; flow i loads ports[offsets[i]:offsets[i+1]].");
}

}  // namespace simai
