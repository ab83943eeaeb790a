"""The traced program as the checker sees it: types, variables, functions, places."""
