"""The processes that are traced: started, watched, their memory, files and stacks."""
