#include "bindings/handed_over.hpp"

#include <array>

#include "bindings/arrays.hpp"

namespace armlet {

namespace {

std::array<PyObject*, 8> parts{};  // for as long as the process lives

void take(Part part, nb::object given) {
    PyObject*& kept = parts[static_cast<std::size_t>(part)];
    PyObject* before = kept;
    kept = given.release().ptr();
    Py_XDECREF(before);
}

void register_parts(nb::object errors, nb::object read_reward, nb::object read_weight, nb::object coins,
                    nb::object interaction, nb::object snapshot, nb::object arrow_table, nb::object unpickle_decision) {
    take(Part::errors, errors), take(Part::read_reward, read_reward), take(Part::read_weight, read_weight);
    take(Part::coins, coins), take(Part::interaction, interaction), take(Part::unpickle_decision, unpickle_decision);
    take(Part::snapshot, snapshot);
    take(Part::arrow_table, arrow_table);
}

}  // namespace

nb::handle handed_over(Part part) {
    PyObject* kept = parts[static_cast<std::size_t>(part)];
    if (!kept)
        fail(PyExc_RuntimeError,
             "the compiled module was loaded by itself; import armlet.kernel, which calls register");
    return kept;
}

void bind_register(nb::module_& m) {
    m.def("register", &register_parts, nb::kw_only(), nb::arg("errors"), nb::arg("read_reward"), nb::arg("read_weight"),
          nb::arg("coins"), nb::arg("interaction"), nb::arg("snapshot"), nb::arg("arrow_table"),
          nb::arg("unpickle_decision"),
          nb::sig(
              "def register(*, errors: object, read_reward: collections.abc.Callable[[float], float], "
              "read_weight: collections.abc.Callable[[float], float], coins: type, interaction: type, snapshot: type, "
              "arrow_table: collections.abc.Callable[[Decisions], typing.Any], "
              "unpickle_decision: collections.abc.Callable[..., Decision]) -> None"),
          "Hands over what this module needs of Armlet's Python side.");
}

}  // namespace armlet
