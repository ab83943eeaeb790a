"""What ``fetchc trace`` does, in parts: what is asked, what is probed, how it is shown."""
