"""Tables of a page: their columns as data, and a picture of each row on one axis."""
