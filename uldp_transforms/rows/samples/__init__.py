"""What is estimated once, and its rows: for collections and questions, for everybody and for groups."""
