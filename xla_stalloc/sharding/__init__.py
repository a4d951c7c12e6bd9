"""Meshes, programs of many devices, absent hardware: the room is here, the next releases furnish it."""
