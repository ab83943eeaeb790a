"""How the fields of a record make one value, kind by kind."""
