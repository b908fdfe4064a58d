#include "state/layered_statistics.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "bindings/rule_binding.hpp"
#include "bindings/unit_arrays.hpp"

namespace armlet {

namespace {

void create(LayeredStatistics* self, std::size_t n_layers, std::size_t n_arms, std::size_t dim,
            const std::string& ridge, double value, const std::string& units, nb::handle origin) {
    if (n_layers == 0 || n_arms == 0 || dim == 0) fail(PyExc_ValueError, "n_layers, n_arms and dim must be at least 1");
    new (self) LayeredStatistics(n_layers, n_arms, parse_units(units, dim, origin), parse_ridge(ridge, value));
}

Statistics& layer(LayeredStatistics& layers, std::ptrdiff_t i) {
    const auto n = static_cast<std::ptrdiff_t>(layers.size());
    if (i < -n || i >= n)
        fail(PyExc_IndexError, "layer is " + std::to_string(i) + " but there are " + std::to_string(n) + " layers");
    return layers[static_cast<std::size_t>(i < 0 ? i + n : i)];
}

Array<double> digits_lost(const LayeredStatistics& layers) {
    const std::size_t columns = LostDigits::features + layers.dim();
    std::vector<double> out(layers.n_arms() * columns);
    for (const Statistics& one : layers) {
        const auto lost = one.lost_digits().digits();
        for (std::size_t i = 0; i < lost.size(); ++i) out[i] = std::max(out[i], lost[i]);
    }
    return to_numpy(std::move(out), {layers.n_arms(), columns});
}

nb::dict arrays(LayeredStatistics& layers) {
    std::vector<double> out;
    for (auto& one : layers) out.insert(out.end(), one.records().begin(), one.records().end());
    nb::dict named;
    named["records"] = to_numpy(std::move(out), {layers.size(), layers.n_arms(), layers[0].record_size()});
    if (!layers[0].units().is_free()) return named;
    std::vector<double> units;
    for (const auto& one : layers) {
        const auto values = one.units().values();
        units.insert(units.end(), values.begin(), values.end());
    }
    named["units"] = to_numpy(std::move(units), {layers.size(), layers[0].units().n_values()});
    return named;
}

void restore_arrays(LayeredStatistics& layers, nb::dict arrays) {
    const std::size_t size = layers[0].record_size(), of_layer = layers.n_arms() * size;
    const double* values = doubles(arrays["records"], "records", {layers.size(), layers.n_arms(), size});
    check_records(values, layers.size() * of_layer, size);
    if (!layers[0].units().is_free()) {
        for (auto& one : layers) one.restore({values, of_layer}), values += of_layer;
        return;
    }
    const std::size_t n = layers[0].units().n_values();
    const double* units = doubles(arrays["units"], "units", {layers.size(), n});
    for (std::size_t i = 0; i < layers.size(); ++i) {
        check_units(layers[i].units(), {units + i * n, n});
        check_renewed(layers[i].units(), {values + i * of_layer, of_layer});
    }
    for (auto& one : layers) {
        one.restore({values, of_layer}, {units, n});
        values += of_layer, units += n;
    }
}

void check_layers(const LayeredStatistics& layers, const LayeredStatistics& other) {
    if (other.size() != layers.size())
        fail(PyExc_ValueError, "there are " + std::to_string(other.size()) + " layers there and " +
                                   std::to_string(layers.size()) + " here");
}

void subtract(LayeredStatistics& layers, LayeredStatistics& earlier, const std::vector<std::size_t>& into) {
    check_layers(layers, earlier);
    LayeredStatistics rest(layers);  // one layer may be refused after another was taken away
    for (std::size_t i = 0; i < layers.size(); ++i) subtract_statistics(rest[i], earlier[i], into);
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i] = rest[i];
}

void merge(LayeredStatistics& layers, LayeredStatistics& other, const std::vector<std::size_t>& into) {
    check_layers(layers, other);
    for (std::size_t i = 0; i < layers.size(); ++i) check_mergeable(layers[i], other[i], into);
    for (std::size_t i = 0; i < layers.size(); ++i) merge_statistics(layers[i], other[i], into);
}

void remove_arm(LayeredStatistics& layers, std::size_t arm) {
    if (arm >= layers.n_arms())
        fail(PyExc_IndexError,
             "arm is " + std::to_string(arm) + " but there are " + std::to_string(layers.n_arms()) + " arms");
    layers.erase_arm(arm);
}

void create_snapshots(FrozenStatistics* self, std::size_t n_arms, std::size_t dim, const std::string& ridge,
                      double value, const std::string& units, nb::handle origin) {
    if (n_arms == 0 || dim == 0) fail(PyExc_ValueError, "n_arms and dim must be at least 1");
    new (self) FrozenStatistics(n_arms, parse_units(units, dim, origin), parse_ridge(ridge, value));
}

void refuse_merge(FrozenStatistics&, nb::handle, nb::handle) {
    fail("MergeError",
         "what each arm was last solved for depends on the order of its rows, so two such states cannot be added, and "
         "have no difference");
}

}  // namespace

void bind_layered_statistics(nb::module_& m) {
    auto layers =
        nb::class_<LayeredStatistics>(m, "LayeredStatistics", nb::dynamic_attr(),
                                      "Several sets of statistics about the same arms.")
            .def("__init__", &create, nb::arg("n_layers"), nb::arg("n_arms"), nb::arg("dim"), nb::kw_only(),
                 nb::arg("ridge") = "paper", nb::arg("value") = 1.0, nb::arg("units") = "as given",
                 nb::arg("origin") = nb::none())
            .def("__len__", &LayeredStatistics::size)
            .def("__getitem__", &layer, nb::arg("layer"), nb::rv_policy::reference_internal,
                 "One set of statistics; it is the layer itself, not a copy.")
            .def_prop_ro("n_arms", &LayeredStatistics::n_arms)
            .def_prop_ro("dim", &LayeredStatistics::dim)
            .def_prop_ro("nbytes", &LayeredStatistics::bytes, "Bytes held by all layers.")
            .def_prop_ro("digits_lost", &digits_lost, owned, "(K, 2 + d): as of `Statistics`, the most of all layers.")
            .def(
                "arrays", &arrays, nb::sig("def arrays(self) -> dict[str, NDArray[numpy.generic]]"),
                "All that must be kept, by name: records, (L, K, 3 + D + D (D + 1) / 2), and free units, (L, 1 + 3 D).")
            .def("restore_arrays", &restore_arrays, nb::arg("arrays"),
                 nb::sig("def restore_arrays(self, arrays: dict[str, NDArray[numpy.generic]]) -> None"),
                 "Takes back what `arrays` gave, if these are sums of rows.")
            .def("merge", &merge, nb::arg("other"), nb::arg("into"), "Adds the other's arm i to this arm into[i].")
            .def("subtract", &subtract, nb::arg("earlier"), nb::arg("into"),
                 "Takes the earlier one's arm i away from this arm into[i].")
            .def("renew", &LayeredStatistics::renew, "In free units: takes the means and deviations of all rows anew.")
            .def("add_arm", &LayeredStatistics::append_arm, "One more arm, of which nothing is known.")
            .def("remove_arm", &remove_arm, nb::arg("arm"))
            .def("copy", [](const LayeredStatistics& layers) { return LayeredStatistics(layers); });
    layers.attr("not_summed") = nb::make_tuple("units");
    nb::class_<FrozenStatistics, LayeredStatistics>(
        m, "FrozenStatistics", nb::dynamic_attr(),
        "Two layers: the rows that each arm was last solved for, and all of them.")
        .def("__init__", &create_snapshots, nb::arg("n_arms"), nb::arg("dim"), nb::kw_only(),
             nb::arg("ridge") = "paper", nb::arg("value") = 1.0, nb::arg("units") = "as given",
             nb::arg("origin") = nb::none())
        .def("merge", &refuse_merge, nb::arg("other"), nb::arg("into"), "Refuses: these do not add up.")
        .def("subtract", &refuse_merge, nb::arg("earlier"), nb::arg("into"), "Refuses: these do not add up.")
        .def("copy", [](const FrozenStatistics& layers) { return FrozenStatistics(layers); });
}

}  // namespace armlet
