"""Images of .NET: portable executables with metadata, and the native code inside them."""
