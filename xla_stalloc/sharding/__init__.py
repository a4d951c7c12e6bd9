"""Meshes and absent hardware: what a program needs on devices that are not here."""
