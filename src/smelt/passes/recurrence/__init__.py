"""Recurrent cells: turn cells that are written out step by step back into LSTM, GRU or RNN.

Loop and Scan do not belong here.
"""
