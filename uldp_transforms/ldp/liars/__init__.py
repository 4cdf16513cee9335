"""A declared share of false reports: what is known of honest people in spite of them."""
