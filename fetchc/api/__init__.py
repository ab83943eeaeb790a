"""The library's face: open a file, take a probe point, compile expressions.

Reading is lazy and nothing global is kept. A Program and what comes of it may be used from
several threads: one lock a Program lets one of them read at a time.
"""
