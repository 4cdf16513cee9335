"""Tables, texts and files that several programs read or write."""
