"""What a fetch does, hop by hop, in the words of the program."""
