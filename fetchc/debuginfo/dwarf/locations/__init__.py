"""Where values are: location expressions and lists, and the call frames that they count from."""
