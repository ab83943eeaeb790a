"""What an event fetches, and how its values are read: made before the kernel is asked."""
