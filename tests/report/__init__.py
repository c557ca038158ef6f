"""Reports: the page, the notebook cell and the terminal say the same, and nothing in a record can break out of them."""
