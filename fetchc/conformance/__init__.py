"""Programs drawn at random, built, run, and read by fetchc: are the values right?

``fetchc conformance`` and the tests of ``tests/conformance`` run what is here.
"""
