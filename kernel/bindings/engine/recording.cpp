#include "bindings/engine/recording.hpp"

namespace armlet {

Recording::Locked::Locked(const Recording& recording) : lock_(recording.holder_.attr("lock")) {
    lock_.attr("acquire")();  // lets go of the interpreter lock while it waits, and raises what a signal handler does
}

Recording::Locked::~Locked() {
    nb::object done = nb::steal(PyObject_CallMethod(lock_.ptr(), "release", nullptr));
    if (!done.is_valid()) PyErr_WriteUnraisable(lock_.ptr());
}

int Recording::traverse(visitproc visit, void* arg) const {
    Py_VISIT(holder_.ptr());
    return 0;
}

nb::list rows_to_list(const std::vector<double>& values, std::size_t dim) {
    nb::list out;
    for (auto row = values.begin(); row != values.end(); row += static_cast<std::ptrdiff_t>(dim))
        out.append(to_list(std::vector<double>(row, row + static_cast<std::ptrdiff_t>(dim))));
    return out;
}

}  // namespace armlet
