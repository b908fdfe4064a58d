#include "bindings/arrays.hpp"

#include "bindings/handed_over.hpp"

namespace armlet {

void load_numpy() {
    nb::module_ numpy = nb::module_::import_("numpy");
    ndarray_type = reinterpret_cast<PyTypeObject*>(nb::object(numpy.attr("ndarray")).release().ptr());
    numpy_integer = reinterpret_cast<PyTypeObject*>(nb::object(numpy.attr("integer")).release().ptr());
}

void fail(PyObject* type, const std::string& message) {
    PyErr_SetString(type, message.c_str());
    throw nb::python_error();
}

void fail(const char* error, const std::string& message) {
    fail(nb::object(handed_over(Part::errors).attr(error)).ptr(), message);
}

namespace {

bool read_item(PyObject* item, double& out) {
    if (PyFloat_CheckExact(item)) {
        out = PyFloat_AS_DOUBLE(item);
        return true;
    }
    if (!PyLong_CheckExact(item)) return false;
    out = PyLong_AsDouble(item);
    if (out == -1.0 && PyErr_Occurred()) PyErr_Clear(), out = INFINITY;
    return std::fabs(out) < 0x1p53;  // from there on a double may not be the integer: Python's reader says so
}

bool read_sequence(PyObject* x, std::size_t d, double* out) {
    if (!PyList_CheckExact(x) && !PyTuple_CheckExact(x)) return false;
    if (static_cast<std::size_t>(PySequence_Fast_GET_SIZE(x)) != d) return false;
    PyObject** items = PySequence_Fast_ITEMS(x);
    for (std::size_t j = 0; j < d; ++j)
        if (!read_item(items[j], out[j])) return false;
    return true;
}

bool read_array(nb::handle x, std::size_t d, double* out) {
    if (!is_plain(x, NPY_DOUBLE, 1)) return false;
    const auto* array = reinterpret_cast<PyArrayObject*>(x.ptr());
    if (static_cast<std::size_t>(PyArray_DIM(array, 0)) != d) return false;
    std::memcpy(out, PyArray_DATA(array), d * sizeof(double));
    return true;
}

std::string shape_text(const std::vector<std::size_t>& shape) {
    std::string out = "(";
    for (const auto n : shape) out += std::to_string(n) + ", ";
    if (shape.size() > 1)
        out.resize(out.size() - 2);
    else if (shape.size() == 1)
        out.resize(out.size() - 1);
    return out + ")";
}

std::string describe(nb::handle h) {
    if (!nb::hasattr(h, "dtype") || !nb::hasattr(h, "shape")) return "a " + text(h.type().attr("__name__"));
    std::string out = text(h.attr("dtype")) + " of shape " + text(h.attr("shape"));
    if (nb::hasattr(h, "flags") && !nb::cast<bool>(h.attr("flags").attr("c_contiguous"))) out += ", not C-contiguous";
    return out;
}

const void* exactly(nb::handle h, const char* name, NPY_TYPES type, const char* dtype,
                    const std::vector<std::size_t>& shape) {
    bool right = is_plain(h, type, static_cast<int>(shape.size()));
    const auto* array = reinterpret_cast<PyArrayObject*>(h.ptr());
    for (std::size_t i = 0; right && i < shape.size(); ++i)
        right = static_cast<std::size_t>(PyArray_DIM(array, static_cast<int>(i))) == shape[i];
    if (!right)
        fail(PyExc_TypeError, std::string(name) + " must be a C-contiguous " + dtype + " numpy array of shape " +
                                  shape_text(shape) + "; got " + describe(h) +
                                  ". Convert it first: numpy.ascontiguousarray(" + name + ", dtype='" + dtype + "')");
    return PyArray_DATA(array);
}

}  // namespace

double read_reward(nb::handle value) {
    if (PyFloat_CheckExact(value.ptr()) && std::fabs(PyFloat_AS_DOUBLE(value.ptr())) <= largest_value)
        return PyFloat_AS_DOUBLE(value.ptr());
    return nb::cast<double>(handed_over(Part::read_reward)(value));
}

double read_weight(nb::handle value) { return nb::cast<double>(handed_over(Part::read_weight)(value)); }

bool read_row(nb::handle x, std::size_t d, double* out) {
    if (!read_array(x, d, out) && !read_sequence(x.ptr(), d, out)) return false;
    bool finite = true;
    for (std::size_t j = 0; j < d; ++j) finite &= std::fabs(out[j]) <= largest_value;
    return finite;
}

std::size_t row_length(nb::handle x) {
    if (PyList_CheckExact(x.ptr()) || PyTuple_CheckExact(x.ptr()))
        return static_cast<std::size_t>(PySequence_Fast_GET_SIZE(x.ptr()));
    if (!is_plain(x, NPY_DOUBLE, 1)) return 0;
    return static_cast<std::size_t>(PyArray_DIM(reinterpret_cast<PyArrayObject*>(x.ptr()), 0));
}

const double* doubles(nb::handle array, const char* name, std::initializer_list<std::size_t> shape) {
    return static_cast<const double*>(exactly(array, name, NPY_DOUBLE, "float64", shape));
}

const bool* booleans(nb::handle array, const char* name, std::size_t length) {
    return static_cast<const bool*>(exactly(array, name, NPY_BOOL, "bool", {length}));
}

// Numpy has two types of 64 bits, long and long long; arrays that the kernel gave are of the second.
const std::int64_t* integers(nb::handle array, const char* name, std::size_t length) {
    static_assert(sizeof(npy_longlong) == sizeof(std::int64_t));
    const NPY_TYPES type = is_plain(array, NPY_LONGLONG, 1) ? NPY_LONGLONG : NPY_INT64;
    return static_cast<const std::int64_t*>(exactly(array, name, type, "int64", {length}));
}

std::size_t count_rows(nb::handle array, const char* name, std::size_t columns) {
    std::size_t rows = 0;
    if (Py_TYPE(array.ptr()) == ndarray_type) {
        const auto* a = reinterpret_cast<PyArrayObject*>(array.ptr());
        if (PyArray_NDIM(a) == 2) rows = static_cast<std::size_t>(PyArray_DIM(a, 0));
    }
    doubles(array, name, {rows, columns});
    return rows;
}

}  // namespace armlet
