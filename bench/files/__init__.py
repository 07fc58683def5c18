"""Files of public repositories, parsed and compared with the text that they should give."""
