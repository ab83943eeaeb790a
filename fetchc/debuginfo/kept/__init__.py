"""What is dear to read again, kept between runs in a folder of the user's own."""
