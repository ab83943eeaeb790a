"""The passes in order: point -> site -> tree -> typed tree -> fetches -> text."""
