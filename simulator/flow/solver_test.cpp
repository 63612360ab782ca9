#include "flow/solver.hpp"

#include <doctest/doctest.h>

#include "model/cluster.hpp"

namespace simai {
namespace {

using doctest::Approx;

std::vector<double> solve(const std::vector<double>& capacity, const std::vector<std::vector<Load>>& loads,
                          const std::vector<double>& weights, const std::vector<double>& caps) {
    MaxMinSolver solver(static_cast<int>(capacity.size()));
    std::vector<SolverFlow> flows;
    for (std::size_t f = 0; f < loads.size(); ++f) flows.push_back({weights[f], caps[f], &loads[f]});
    std::vector<double> rates;
    solver.solve(flows, capacity, rates);
    return rates;
}

TEST_CASE("solver: port 0: 2a + b = 14, port 1: b + c = 10, a : b : c = 1 : 2 : 1 until one stops") {
    // theta_1 = 10 / (2 + 1) is below theta_0 = 14 / (2 + 2): b = 20/3, c = 10/3, then a = (14 - 20/3) / 2.
    const auto rates =
        solve({14, 10}, {{{0, 2}}, {{0, 1}, {1, 1}}, {{1, 1}}}, {1, 2, 1}, {kUnlimited, kUnlimited, kUnlimited});
    CHECK(rates[0] == Approx(11.0 / 3));
    CHECK(rates[1] == Approx(20.0 / 3));
    CHECK(rates[2] == Approx(10.0 / 3));
}

TEST_CASE("solver: a + b + c = 12, a = 2 is its cap, b = c") {
    const auto rates = solve({12}, {{{0, 1}}, {{0, 1}}, {{0, 1}}}, {1, 1, 1}, {2, kUnlimited, kUnlimited});
    CHECK(rates == std::vector<double>{2, 5, 5});
}

TEST_CASE("solver: a flow that loads a port twice takes both: (1 + 2) a + b = 12, a = b") {
    const auto rates = solve({12}, {{{0, 1}, {0, 2}}, {{0, 1}}}, {1, 1}, {kUnlimited, kUnlimited});
    CHECK(rates == std::vector<double>{3, 3});
}

TEST_CASE("solver: a dead port stops its flows, an unlimited one none") {
    const auto rates = solve({0, kUnlimited, 8}, {{{0, 1}, {2, 1}}, {{1, 1}, {2, 1}}, {{1, 1}}}, {1, 1, 1},
                             {kUnlimited, kUnlimited, 3});
    CHECK(rates == std::vector<double>{0, 8, 3});
}

TEST_CASE("solver: without a port or a cap a rate is unlimited") {
    CHECK(solve({1}, {{}}, {1}, {kUnlimited})[0] == kUnlimited);
    CHECK(solve({1}, {}, {}, {}).empty());
}

TEST_CASE("solver: a solution leaves nothing behind for the next one") {
    MaxMinSolver solver(2);
    const std::vector<Load> first{{0, 1}}, both{{0, 1}, {1, 1}};
    std::vector<double> rates;
    solver.solve({{1, kUnlimited, &both}, {1, kUnlimited, &first}}, {4, 1}, rates);
    CHECK(rates == std::vector<double>{1, 3});
    solver.solve({{1, kUnlimited, &first}}, {4, 1}, rates);
    CHECK(rates == std::vector<double>{4});
}

}  // namespace
}  // namespace simai
