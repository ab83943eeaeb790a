"""What tests share: builders, readers of corpus files, harnesses. Nothing here is a test."""
