#include "trace/trace.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings/register.hpp"
#include "trace/critical_path.hpp"
#include "trace/fingerprint.hpp"
#include "trace/json.hpp"
#include "trace/reader.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace simai {
namespace {

using FileBytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Bytes span_of(const FileBytes& file) { return {file.data(), file.size()}; }

// A new numpy array of what `value` makes of each element.
template <typename T, typename Container, typename Value>
nb::object column(const Container& from, Value value) {
    T* values = new T[from.size()];
    nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    std::transform(from.begin(), from.end(), values, value);
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(values, {from.size()}, owner));
}

template <typename T, typename Member>
auto node_column(Member TraceNode::* member) {
    return [member](const Trace& trace) {
        return column<T>(trace.nodes, [member](const TraceNode& node) { return static_cast<T>(node.*member); });
    };
}

template <typename T, typename U>
nb::object plain_column(const std::vector<U>& values) {
    return column<T>(values, [](U value) { return static_cast<T>(value); });
}

const char* name_of_severity(Severity severity) {
    return severity == Severity::kError ? "error" : severity == Severity::kWarning ? "warning" : "note";
}

struct Read {
    Reading reading;
    Fingerprint print;
};

Read py_read_trace(const FileBytes& file) {
    const nb::gil_scoped_release release;
    Read read{read_trace(span_of(file)), {}};
    read.print = fingerprint(read.reading.trace);
    return read;
}

nb::tuple piece(const JsonPiece& made) {
    return nb::make_tuple(nb::bytes(made.text.data(), made.text.size()), made.next);
}

nb::tuple py_nodes_json(const FileBytes& file, std::size_t from, std::size_t limit) {
    JsonPiece made;
    {
        const nb::gil_scoped_release release;
        made = nodes_json(span_of(file), from, limit);
    }
    return piece(made);
}

nb::tuple py_critical_path(const Trace& trace) {
    const CriticalPath path = critical_path(trace);
    return nb::make_tuple(path.seconds, plain_column<std::int64_t>(path.positions));
}

void register_finding(nb::module_& m) {
    nb::class_<Finding>(m, "TraceFinding")
        .def_prop_ro("severity", [](const Finding& f) { return name_of_severity(f.check.severity); })
        .def_prop_ro("kind", [](const Finding& f) { return std::string(f.check.name); })
        .def_ro("reason", &Finding::reason)
        .def_ro("node", &Finding::node)
        .def_ro("position", &Finding::position)
        .def_ro("offset", &Finding::offset)
        .def_ro("more", &Finding::more);
}

}  // namespace

void register_trace(nb::module_& m) {
    register_finding(m);
    nb::class_<Trace>(m, "Trace")
        .def("__len__", [](const Trace& t) { return t.nodes.size(); })
        .def_ro("names", &Trace::names)
        .def_ro("groups", &Trace::groups)
        .def_ro("peers", &Trace::peers)
        .def_prop_ro("id", node_column<std::int64_t>(&TraceNode::id))
        .def_prop_ro("type", node_column<std::int64_t>(&TraceNode::type))
        .def_prop_ro("comm_type", node_column<std::int64_t>(&TraceNode::comm))
        .def_prop_ro("on_cpu", node_column<bool>(&TraceNode::on_cpu))
        .def_prop_ro("name", node_column<std::int64_t>(&TraceNode::name))
        .def_prop_ro("group", node_column<std::int64_t>(&TraceNode::group))
        .def_prop_ro("peer", node_column<std::int64_t>(&TraceNode::peer))
        .def_prop_ro("bytes", node_column<std::int64_t>(&TraceNode::bytes))
        .def_prop_ro("tag", node_column<std::int64_t>(&TraceNode::tag))
        .def_prop_ro("num_ops", node_column<std::int64_t>(&TraceNode::num_ops))
        .def_prop_ro("tensor_bytes", node_column<std::int64_t>(&TraceNode::tensor_bytes))
        .def_prop_ro("duration_s", node_column<double>(&TraceNode::duration_s))
        .def_prop_ro("dep_offsets", [](const Trace& t) { return plain_column<std::int64_t>(t.dep_offsets); })
        .def_prop_ro("deps", [](const Trace& t) { return plain_column<std::int64_t>(t.deps); });
    nb::class_<Read>(m, "TraceReading")
        .def_prop_ro(
            "trace", [](const Read& r) -> const Trace& { return r.reading.trace; }, nb::rv_policy::reference_internal)
        .def_prop_ro("version", [](const Read& r) { return r.reading.version; })
        .def_prop_ro("findings", [](const Read& r) { return r.reading.findings.all(); })
        .def_prop_ro("errors", [](const Read& r) { return r.reading.findings.errors(); })
        .def_prop_ro("digest", [](const Read& r) { return nb::bytes(r.print.digest.data(), sizeof(r.print.digest)); })
        .def_prop_ro("collectives", [](const Read& r) { return r.print.collectives; })
        .def_prop_ro("sends", [](const Read& r) { return r.print.sends; })
        .def_prop_ro("receives", [](const Read& r) { return r.print.receives; });
    nb::exception<WireError>(m, "TraceError");
    m.def("read_trace", &py_read_trace, "file"_a,
          "The trace of one rank and what is wrong with it; never raises for what the bytes are.");
    m.def("critical_path", &py_critical_path, "trace"_a, "Seconds of compute on it, and the positions of its nodes.");
    m.def(
        "metadata_json", [](const FileBytes& file) { return piece(metadata_json(span_of(file))); }, "file"_a,
        "The metadata as JSON, and the byte at which the nodes begin. Raises TraceError.");
    m.def("nodes_json", &py_nodes_json, "file"_a, "at"_a, "limit"_a,
          "About `limit` bytes of JSON of the nodes from a byte on, and the byte to go on from. Raises TraceError.");
}

}  // namespace simai
