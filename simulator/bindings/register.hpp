// One registration function a concept; module.cpp only calls them.
#pragma once

#include <nanobind/nanobind.h>

namespace simai {

void register_cluster(nanobind::module_& m);
void register_schedule(nanobind::module_& m);
void register_runs(nanobind::module_& m);
void register_solver(nanobind::module_& m);
void register_trace(nanobind::module_& m);
void register_training(nanobind::module_& m);
void register_port_loads(nanobind::module_& m);

}  // namespace simai
