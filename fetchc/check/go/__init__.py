"""What Go has of its own: captured variables, goroutines, where parameters and results are."""
