"""How many examples Hypothesis tries in the tests of the library."""

from support import examples

examples.load_profile()
