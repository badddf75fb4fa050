"""SLURM: what a job asks for, what became of it, and what runs first in it."""
