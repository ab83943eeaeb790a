"""The files of .NET: portable executables, single-file programs, native code in them."""
