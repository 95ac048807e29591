"""Counting from the middle: halves of the board listed by their columns, and pairs of them counted.

An upper half on a set C of columns and a lower half on the others make a solution if no diagonal
meets between them. Even boards are two halves; an odd board has a middle row between them, whose
queen is placed first.
"""
