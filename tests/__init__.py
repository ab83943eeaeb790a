"""The tests of fetchc, by purpose; README.md beside this file says what goes where."""
