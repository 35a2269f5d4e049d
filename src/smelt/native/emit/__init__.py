"""The C text of a program: functions, constants, weights and the calls between them."""
