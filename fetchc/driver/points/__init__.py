"""From what a user says of a place to the instructions to probe."""
