"""What Rust has of its own: variants, and structures that stand for what they hold."""
