"""Tables, texts and files that several programs use."""
