// Methods of Engine that are bound by hand.
#pragma once
#include <Python.h>

namespace armlet {

extern PyMethodDef hot_methods[];

}  // namespace armlet
