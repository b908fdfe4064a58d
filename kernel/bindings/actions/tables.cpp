// Tables of actions: labels and features from dicts, and what the model calls each action.
#include <bit>
#include <string>

#include "actions/blake2b.hpp"
#include "bindings/arrays.hpp"
#include "bindings/binding.hpp"
#include "bindings/engine/engine.hpp"

namespace armlet {

namespace {

// "s" and the text, or "i" and the digits: the text 7 and the number 7 are two.
void write_label(nb::handle label, std::string& out) {
    const bool is_text = PyUnicode_CheckExact(label.ptr());
    nb::object given = is_text ? nb::borrow(label) : nb::object(nb::str(label));
    out.assign(1, is_text ? 's' : 'i');
    Py_ssize_t size = 0;
    if (const char* bytes = PyUnicode_AsUTF8AndSize(given.ptr(), &size)) {
        out.append(bytes, static_cast<std::size_t>(size));
        return;
    }
    PyErr_Clear();  // half of a surrogate pair
    nb::object bytes = nb::steal(PyUnicode_AsEncodedString(given.ptr(), "utf-8", "surrogatepass"));
    if (!bytes.is_valid()) throw nb::python_error();
    out.append(PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr())));
}

void write_number(double value, std::string& out) {
    auto bits = std::bit_cast<std::uint64_t>(value);
    for (int i = 0; i < 8; ++i, bits >>= 8) out.push_back(static_cast<char>(bits & 0xff));
}

std::size_t columns_of(nb::handle matrix) {
    return static_cast<std::size_t>(PyArray_DIM(reinterpret_cast<PyArrayObject*>(matrix.ptr()), 1));
}

Array<std::uint64_t> action_keys(nb::handle labels, nb::handle Z) {
    const std::size_t n = nb::len(labels), dz = is_plain(Z, NPY_DOUBLE, 2) ? columns_of(Z) : 0;
    const double* values = doubles(Z, "Z", {n, dz});
    std::vector<Word> out;
    std::string data;
    for (std::size_t i = 0; i < n; ++i) {
        write_label(nb::object(labels[i]), data);
        for (std::size_t j = 0; j < dz; ++j) write_number(values[i * dz + j], data);
        out.push_back(blake2b_8(data));
    }
    return to_numpy<std::uint64_t>(std::move(out), {n});
}

bool is_plain_label(nb::handle label) {
    return PyLong_CheckExact(label.ptr()) || (PyUnicode_CheckExact(label.ptr()) && PyUnicode_IS_ASCII(label.ptr()));
}

// Labels and features of a dict of dicts of numbers; None if something in it is to be read, or refused, by Python.
nb::object read_action_dicts(nb::handle actions, nb::handle names, std::size_t width) {
    if (!PyDict_CheckExact(actions.ptr()) || PyDict_GET_SIZE(actions.ptr()) == 0) return nb::none();
    const Names features = names_of(names, width);
    if (features->size() != width || width == 0) return nb::none();
    const nb::object items = nb::steal(PyDict_Items(actions.ptr()));
    const std::size_t n = nb::len(items);
    nb::list labels;
    std::vector<double> out(n * width);
    for (std::size_t i = 0; i < n; ++i) {
        const nb::object pair = items[i], label = pair[0], row = pair[1];
        if (!is_plain_label(label) || !read_named(row, *features, out.data() + i * width)) return nb::none();
        labels.append(label);
    }
    return nb::make_tuple(labels, to_numpy(std::move(out), {n, width}));
}

}  // namespace

void bind_action_tables(nb::module_& m) {
    m.def("action_keys", &action_keys, nb::arg("labels"), nb::arg("Z"),
          nb::sig("def action_keys(labels: collections.abc.Sequence[str | int], Z: NDArray[numpy.float64]) -> "
                  "NDArray[numpy.uint64]"),
          "(n,): of each action eight bytes of BLAKE2b of its label and features, little-endian.");
    m.def("read_action_dicts", &read_action_dicts, nb::arg("actions").none(), nb::arg("names").none(), nb::arg("width"),
          nb::sig("def read_action_dicts(actions: object, names: tuple[str, ...] | None, width: int) -> "
                  "tuple[list[str | int], NDArray[numpy.float64]] | None"),
          "Labels and (n, width) features of a dict of dicts of numbers; None if it is anything else.");
}

}  // namespace armlet
