"""Recurrent cells: what was written out step by step becomes LSTM, GRU or RNN again.

Loops do not belong here, whose rounds have one body.
"""
