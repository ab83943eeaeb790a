"""What C++ has of its own: classes with their bases, and library types as their users see them."""
