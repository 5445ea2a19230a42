"""The broker's cores: immutable values without I/O, clock or chance; one input gives the next value and its effects."""
