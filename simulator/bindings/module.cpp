#include "bindings/register.hpp"

NB_MODULE(_core, m) {
    m.doc() = "The compiled engine: schedules on a cluster of NICs that fail. Seconds, bytes, bytes per second.";
    simai::register_cluster(m);
    simai::register_schedule(m);
    simai::register_runs(m);
    simai::register_solver(m);
    simai::register_trace(m);
    simai::register_training(m);
    simai::register_port_loads(m);
}
