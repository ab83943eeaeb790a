"""From names to entries: functions, types, variables."""
