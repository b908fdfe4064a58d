#include "bindings/budget/pacer.hpp"

#include <cmath>

namespace armlet {

std::span<const double> read_pacer_values(nb::handle values) {
    const double* given = doubles(values, "values", {Pacer::n_values});
    const std::span<const double> out(given, Pacer::n_values);
    for (const double value : out)
        if (!std::isfinite(value)) fail(PyExc_ValueError, "values of a pacer hold " + text(value) + "; give numbers");
    return out;
}

Array<double> pacer_array(const Pacer& pacer) { return to_numpy(pacer.values(), {Pacer::n_values}); }

void bind_pacer(nb::module_& m) {
    nb::class_<Pacer>(m, "Pacer", "The price that keeps the spend of a bandit within its budget.")
        .def(
            "__init__",
            [](Pacer* self, double total, double length, bool repeats) {
                new (self) Pacer({.total = total, .length = length, .repeats = repeats});
            },
            nb::arg("total"), nb::arg("length"), nb::arg("repeats"))
        .def_prop_ro("price", &Pacer::price)
        .def_prop_ro("spent", &Pacer::spent)
        .def_prop_ro("decisions", &Pacer::decisions)
        .def_prop_ro("waiting", &Pacer::waiting)
        .def("begin", &Pacer::begin)
        .def("count", &Pacer::count, nb::arg("cost"))
        .def("correct", &Pacer::correct, nb::arg("before"), nb::arg("after"))
        .def("expire", &Pacer::expire)
        .def("await_cost", &Pacer::await)
        .def("see", &Pacer::see, nb::arg("reward"))
        .def("affords", &Pacer::affords, nb::arg("cost"), nb::arg("bound"))
        .def("merge", &Pacer::merge, nb::arg("other"))
        .def("subtract", &Pacer::subtract, nb::arg("earlier"))
        .def("values", &pacer_array, "(10,): what must be kept.")
        .def(
            "restore", [](Pacer& self, nb::handle values) { self.restore(read_pacer_values(values)); },
            nb::arg("values"));
}

}  // namespace armlet
