"""Changes to libraries by attributes that these do not document: one module for each library."""
